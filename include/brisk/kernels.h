// brisk/kernels.h: Brisk's CUDA kernels on raw device pointers, for programs that bring their own tensors. No CUDA
// header is needed. A launcher checks its options, launches, and returns: it neither allocates nor waits. It throws
// Error [option] for options that do not fit, Error [backend] when the launch fails or the build has no CUDA.
#pragma once

#include "brisk/kernels/activation.h"
#include "brisk/kernels/batch_norm.h"
#include "brisk/kernels/conv.h"
#include "brisk/kernels/elementwise.h"
#include "brisk/kernels/gemm.h"
#include "brisk/kernels/layer_norm.h"
#include "brisk/kernels/layout.h"
#include "brisk/kernels/loss.h"
#include "brisk/kernels/optimizer.h"
#include "brisk/kernels/pool.h"
#include "brisk/kernels/random.h"
#include "brisk/kernels/reduce.h"
#include "brisk/kernels/run_state.h"
#include "brisk/kernels/softmax.h"
#include "brisk/kernels/status.h"
#include "brisk/kernels/stream.h"
