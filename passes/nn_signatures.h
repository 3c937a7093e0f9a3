// Fuseboard: constructor signatures of torch.nn, so that generated code leaves out what is the default anyway. GPL-3.0-or-later.
// As torch 2.13's inspect.signature gives them, without device and dtype; `bias` of the norms is newer than 1.13 and left out.
#pragma once

#include <string_view>

namespace fb
{

struct NnSignature {
    std::string_view className, params;
};

constexpr NnSignature kNnSignatures[] = {
    { "torch.nn.modules.conv.Conv1d",
        "in_channels, out_channels, kernel_size, stride=1, padding=0, dilation=1, groups=1, bias=True, padding_mode='zeros'" },
    { "torch.nn.modules.conv.Conv2d",
        "in_channels, out_channels, kernel_size, stride=1, padding=0, dilation=1, groups=1, bias=True, padding_mode='zeros'" },
    { "torch.nn.modules.conv.Conv3d",
        "in_channels, out_channels, kernel_size, stride=1, padding=0, dilation=1, groups=1, bias=True, padding_mode='zeros'" },
    { "torch.nn.modules.conv.ConvTranspose1d",
        "in_channels, out_channels, kernel_size, stride=1, padding=0, output_padding=0, groups=1, bias=True, dilation=1, "
        "padding_mode='zeros'" },
    { "torch.nn.modules.conv.ConvTranspose2d",
        "in_channels, out_channels, kernel_size, stride=1, padding=0, output_padding=0, groups=1, bias=True, dilation=1, "
        "padding_mode='zeros'" },
    { "torch.nn.modules.conv.ConvTranspose3d",
        "in_channels, out_channels, kernel_size, stride=1, padding=0, output_padding=0, groups=1, bias=True, dilation=1, "
        "padding_mode='zeros'" },
    { "torch.nn.modules.linear.Linear", "in_features, out_features, bias=True" },
    { "torch.nn.modules.linear.Bilinear", "in1_features, in2_features, out_features, bias=True" },
    { "torch.nn.modules.batchnorm.BatchNorm1d", "num_features, eps=1e-05, momentum=0.1, affine=True, track_running_stats=True" },
    { "torch.nn.modules.batchnorm.BatchNorm2d", "num_features, eps=1e-05, momentum=0.1, affine=True, track_running_stats=True" },
    { "torch.nn.modules.batchnorm.BatchNorm3d", "num_features, eps=1e-05, momentum=0.1, affine=True, track_running_stats=True" },
    { "torch.nn.modules.normalization.LayerNorm", "normalized_shape, eps=1e-05, elementwise_affine=True" },
    { "torch.nn.modules.normalization.GroupNorm", "num_groups, num_channels, eps=1e-05, affine=True" },
    { "torch.nn.modules.instancenorm.InstanceNorm1d",
        "num_features, eps=1e-05, momentum=0.1, affine=False, track_running_stats=False" },
    { "torch.nn.modules.instancenorm.InstanceNorm2d",
        "num_features, eps=1e-05, momentum=0.1, affine=False, track_running_stats=False" },
    { "torch.nn.modules.instancenorm.InstanceNorm3d",
        "num_features, eps=1e-05, momentum=0.1, affine=False, track_running_stats=False" },
    { "torch.nn.modules.activation.ReLU", "inplace=False" },
    { "torch.nn.modules.activation.ReLU6", "inplace=False" },
    { "torch.nn.modules.activation.LeakyReLU", "negative_slope=0.01, inplace=False" },
    { "torch.nn.modules.activation.PReLU", "num_parameters=1, init=0.25" },
    { "torch.nn.modules.activation.ELU", "alpha=1.0, inplace=False" },
    { "torch.nn.modules.activation.CELU", "alpha=1.0, inplace=False" },
    { "torch.nn.modules.activation.SELU", "inplace=False" },
    { "torch.nn.modules.activation.GELU", "approximate='none'" },
    { "torch.nn.modules.activation.SiLU", "inplace=False" },
    { "torch.nn.modules.activation.Mish", "inplace=False" },
    { "torch.nn.modules.activation.Hardtanh", "min_val=-1.0, max_val=1.0, inplace=False" },
    { "torch.nn.modules.activation.Hardswish", "inplace=False" },
    { "torch.nn.modules.activation.Hardsigmoid", "inplace=False" },
    { "torch.nn.modules.activation.Sigmoid", "" },
    { "torch.nn.modules.activation.LogSigmoid", "" },
    { "torch.nn.modules.activation.Tanh", "" },
    { "torch.nn.modules.activation.Softmax", "dim=None" },
    { "torch.nn.modules.activation.LogSoftmax", "dim=None" },
    { "torch.nn.modules.activation.Softplus", "beta=1.0, threshold=20.0" },
    { "torch.nn.modules.pooling.MaxPool1d",
        "kernel_size, stride=None, padding=0, dilation=1, return_indices=False, ceil_mode=False" },
    { "torch.nn.modules.pooling.MaxPool2d",
        "kernel_size, stride=None, padding=0, dilation=1, return_indices=False, ceil_mode=False" },
    { "torch.nn.modules.pooling.MaxPool3d",
        "kernel_size, stride=None, padding=0, dilation=1, return_indices=False, ceil_mode=False" },
    { "torch.nn.modules.pooling.AvgPool1d", "kernel_size, stride=None, padding=0, ceil_mode=False, count_include_pad=True" },
    { "torch.nn.modules.pooling.AvgPool2d",
        "kernel_size, stride=None, padding=0, ceil_mode=False, count_include_pad=True, divisor_override=None" },
    { "torch.nn.modules.pooling.AvgPool3d",
        "kernel_size, stride=None, padding=0, ceil_mode=False, count_include_pad=True, divisor_override=None" },
    { "torch.nn.modules.pooling.AdaptiveAvgPool1d", "output_size" },
    { "torch.nn.modules.pooling.AdaptiveAvgPool2d", "output_size" },
    { "torch.nn.modules.pooling.AdaptiveAvgPool3d", "output_size" },
    { "torch.nn.modules.pooling.AdaptiveMaxPool1d", "output_size, return_indices=False" },
    { "torch.nn.modules.pooling.AdaptiveMaxPool2d", "output_size, return_indices=False" },
    { "torch.nn.modules.dropout.Dropout", "p=0.5, inplace=False" },
    { "torch.nn.modules.dropout.Dropout1d", "p=0.5, inplace=False" },
    { "torch.nn.modules.dropout.Dropout2d", "p=0.5, inplace=False" },
    { "torch.nn.modules.dropout.Dropout3d", "p=0.5, inplace=False" },
    { "torch.nn.modules.dropout.AlphaDropout", "p=0.5, inplace=False" },
    { "torch.nn.modules.sparse.Embedding",
        "num_embeddings, embedding_dim, padding_idx=None, max_norm=None, norm_type=2.0, scale_grad_by_freq=False, sparse=False" },
    { "torch.nn.modules.flatten.Flatten", "start_dim=1, end_dim=-1" },
    { "torch.nn.modules.flatten.Unflatten", "dim, unflattened_size" },
    { "torch.nn.modules.upsampling.Upsample",
        "size=None, scale_factor=None, mode='nearest', align_corners=None, recompute_scale_factor=None" },
    { "torch.nn.modules.pixelshuffle.PixelShuffle", "upscale_factor" },
    { "torch.nn.modules.pixelshuffle.PixelUnshuffle", "downscale_factor" },
    { "torch.nn.modules.channelshuffle.ChannelShuffle", "groups" },
    { "torch.nn.modules.padding.ZeroPad2d", "padding" },
    { "torch.nn.modules.padding.ReflectionPad2d", "padding" },
    { "torch.nn.modules.padding.ReplicationPad2d", "padding" },
    { "torch.nn.modules.linear.Identity", "" },
    { "torch.nn.modules.activation.MultiheadAttention",
        "embed_dim, num_heads, dropout=0.0, bias=True, add_bias_kv=False, add_zero_attn=False, kdim=None, vdim=None, "
        "batch_first=False" },
    { "torch.nn.modules.normalization.LocalResponseNorm", "size, alpha=0.0001, beta=0.75, k=1.0" },
    { "torch.nn.modules.fold.Fold", "output_size, kernel_size, dilation=1, padding=0, stride=1" },
    { "torch.nn.modules.fold.Unfold", "kernel_size, dilation=1, padding=0, stride=1" },
    { "torch.nn.modules.rnn.LSTM",
        "input_size, hidden_size, num_layers=1, bias=True, batch_first=False, dropout=0.0, bidirectional=False, proj_size=0" },
    { "torch.nn.modules.rnn.RNN",
        "input_size, hidden_size, num_layers=1, nonlinearity='tanh', bias=True, batch_first=False, dropout=0.0, "
        "bidirectional=False" },
    { "torch.nn.modules.rnn.GRU",
        "input_size, hidden_size, num_layers=1, bias=True, batch_first=False, dropout=0.0, bidirectional=False" },
    { "torch.nn.modules.padding.ZeroPad1d", "padding" },
    { "torch.nn.modules.padding.ZeroPad3d", "padding" },
    { "torch.nn.modules.upsampling.UpsamplingBilinear2d", "size=None, scale_factor=None" },
    { "torch.nn.modules.upsampling.UpsamplingNearest2d", "size=None, scale_factor=None" },
    { "torch.nn.modules.distance.PairwiseDistance", "p=2.0, eps=1e-06, keepdim=False" },
    { "torch.nn.modules.loss.TripletMarginWithDistanceLoss", "distance_function=None, margin=1.0, swap=False, reduction='mean'" },
    { "torch.nn.modules.loss.BCEWithLogitsLoss", "weight=None, reduction='mean', pos_weight=None" },
    { "torch.nn.modules.loss.LinearCrossEntropyLoss",
        "in_features, num_classes, out_features=(), bias=False, reduction='mean', weight=None, ignore_index=None, "
        "label_smoothing=0.0, options=None" },
    { "torch.nn.modules.adaptive.AdaptiveLogSoftmaxWithLoss", "in_features, n_classes, cutoffs, div_value=4.0, head_bias=False" },
    { "torch.nn.modules.transformer.TransformerEncoderLayer",
        "d_model, nhead, dim_feedforward=2048, dropout=0.1, activation='relu', layer_norm_eps=1e-05, batch_first=False, "
        "norm_first=False, bias=True" },
    { "torch.nn.modules.transformer.TransformerDecoderLayer",
        "d_model, nhead, dim_feedforward=2048, dropout=0.1, activation='relu', layer_norm_eps=1e-05, batch_first=False, "
        "norm_first=False, bias=True" },
    { "torch.nn.modules.transformer.TransformerEncoder",
        "encoder_layer, num_layers, norm=None, enable_nested_tensor=True, mask_check=True" },
    { "torch.nn.modules.transformer.TransformerDecoder", "decoder_layer, num_layers, norm=None" },
    { "torch.nn.modules.transformer.Transformer",
        "d_model=512, nhead=8, num_encoder_layers=6, num_decoder_layers=6, dim_feedforward=2048, dropout=0.1, activation='relu', "
        "layer_norm_eps=1e-05, batch_first=False, norm_first=False, bias=True" },
};

// An argument that the module keeps under another name or in a module of its own; `from` ends in a fact or in a module.
struct NnFact {
    std::string_view className, param, from;
};

constexpr NnFact kNnFacts[] = {
    { "torch.nn.modules.rnn.RNN", "nonlinearity", "mode" },
    { "torch.nn.modules.activation.MultiheadAttention", "bias", "out_proj.bias" },
    { "torch.nn.modules.activation.MultiheadAttention", "add_bias_kv", "bias_k" },
    { "torch.nn.modules.distance.PairwiseDistance", "p", "norm" },
    { "torch.nn.modules.transformer.TransformerEncoderLayer", "d_model", "self_attn.embed_dim" },
    { "torch.nn.modules.transformer.TransformerEncoderLayer", "nhead", "self_attn.num_heads" },
    { "torch.nn.modules.transformer.TransformerEncoderLayer", "dim_feedforward", "linear1.out_features" },
    { "torch.nn.modules.transformer.TransformerEncoderLayer", "dropout", "dropout.p" },
    { "torch.nn.modules.transformer.TransformerEncoderLayer", "layer_norm_eps", "norm1.eps" },
    { "torch.nn.modules.transformer.TransformerEncoderLayer", "batch_first", "self_attn.batch_first" },
    { "torch.nn.modules.transformer.TransformerEncoderLayer", "bias", "linear1.bias" },
    { "torch.nn.modules.transformer.TransformerDecoderLayer", "d_model", "self_attn.embed_dim" },
    { "torch.nn.modules.transformer.TransformerDecoderLayer", "nhead", "self_attn.num_heads" },
    { "torch.nn.modules.transformer.TransformerDecoderLayer", "dim_feedforward", "linear1.out_features" },
    { "torch.nn.modules.transformer.TransformerDecoderLayer", "dropout", "dropout.p" },
    { "torch.nn.modules.transformer.TransformerDecoderLayer", "layer_norm_eps", "norm1.eps" },
    { "torch.nn.modules.transformer.TransformerDecoderLayer", "batch_first", "self_attn.batch_first" },
    { "torch.nn.modules.transformer.TransformerDecoderLayer", "bias", "linear1.bias" },
    { "torch.nn.modules.transformer.TransformerEncoder", "encoder_layer", "layers.0" },
    { "torch.nn.modules.transformer.TransformerDecoder", "decoder_layer", "layers.0" },
    { "torch.nn.modules.transformer.Transformer", "num_encoder_layers", "encoder.num_layers" },
    { "torch.nn.modules.transformer.Transformer", "num_decoder_layers", "decoder.num_layers" },
    { "torch.nn.modules.transformer.Transformer", "dim_feedforward", "encoder.layers.0.linear1.out_features" },
    { "torch.nn.modules.transformer.Transformer", "dropout", "encoder.layers.0.dropout.p" },
    { "torch.nn.modules.transformer.Transformer", "activation", "encoder.layers.0.activation" },
    { "torch.nn.modules.transformer.Transformer", "layer_norm_eps", "encoder.layers.0.norm1.eps" },
    { "torch.nn.modules.transformer.Transformer", "norm_first", "encoder.layers.0.norm_first" },
    { "torch.nn.modules.transformer.Transformer", "bias", "encoder.layers.0.linear1.bias" },
    { "torch.nn.modules.loss.LinearCrossEntropyLoss", "in_features", "linear.in_features" },
    { "torch.nn.modules.loss.LinearCrossEntropyLoss", "bias", "linear.bias" },
};

} // namespace fb
