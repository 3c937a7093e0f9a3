namespace fb {}
