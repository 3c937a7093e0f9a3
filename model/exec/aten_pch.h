// Precompiled for the runtime library: ATen costs seconds a file otherwise. Never included by a public header.
#pragma once

#include <ATen/ATen.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <torch/csrc/jit/serialization/import.h>
