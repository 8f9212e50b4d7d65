"""Names of kernels read: library, operation, type, tile, tensor cores."""

import random
import string

import pytest

from torchwhy.trace.meaning.kernels import OPERATIONS, decode, distinct
from torchwhy.trace.meaning.kernels.name import LONGEST
from torchwhy.trace.meaning.kernels.words import _LIBRARIES

AT = "void at::native::"
ADD = AT + "vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<c10::BFloat16>, std::array<char*, 3ul> >(int)"
CLAMP = (
    "void at::native::vectorized_elementwise_kernel<4, "
    "at::native::(anonymous namespace)::launch_clamp_scalar("
    "at::TensorIteratorBase&, c10::Scalar)::{lambda()#1}::operator()() const::{lambda(float)#1}, "
    "at::detail::Array<char*, 2> >(int)"
)
MEAN = AT + "reduce_kernel<512, 1, at::native::ReduceOp<float, at::native::MeanOps<float> > >()"
TENSILE = "Cijk_Alik_Bljk_BBS_BH_Bias_HA_S_SAV_UserArgs_MT320x224x64_MI16x16x1_SN_LDSB0"
KNOWN = [
    # name, library, operation, dtype, tile, layout, tensor cores
    ("volta_sgemm_64x64_nt", "cuBLAS", "matmul", "float32", "64x64", "nt", False),
    ("ampere_dgemm_64x64_nn", "cuBLAS", "matmul", "float64", "64x64", "nn", False),
    ("volta_fp16_s884gemm_fp16_128x64_ldg8_f2f_nn", "cuBLAS", "matmul", "float16", "128x64", "nn", True),
    (
        "void cutlass::Kernel<cutlass_80_tensorop_s1688gemm_256x64_16x4_tn_align1>(P)",
        "CUTLASS",
        "matmul",
        "tf32",
        "256x64x16",
        "tn",
        True,
    ),
    (
        "void cutlass::Kernel2<cutlass_75_tensorop_bf16_s1688gemm_bf16_128x128_nn_align1>(P)",
        "CUTLASS",
        "matmul",
        "bfloat16",
        "128x128",
        "nn",
        True,
    ),
    (
        "sm90_xmma_gemm_f32f32_tf32f32_f32_tn_n_tilesize128x64x32_warpgroupsize1x1x1_kernel",
        "cuBLAS",
        "matmul",
        "tf32",
        "128x64x32",
        "tn",
        True,
    ),
    ("nvjet_hsh_128x256_64x4_1x2_h_bz_coopA_NTT", "cuBLAS", "matmul", "float16", "128x256", "nt", True),
    (TENSILE, "hipBLASLt", "matmul", "bfloat16", "320x224x64", "tn", True),
    ("Cijk_Ailk_Bjlk_DB_MT64x64x8_SN", "rocBLAS", "matmul", "float64", "64x64x8", "nt", False),
    ("volta_scudnn_128x64_relu_interior_nn_v1", "cuDNN", "convolution", "float32", "128x64", "", False),
    (
        "igemm_fwd_gtcx3_nhwc_bf16_bx0_ex1_bt128x256x32_wt32x32x8",
        "MIOpen",
        "convolution",
        "bfloat16",
        "128x256x32",
        "nhwc",
        True,
    ),
    ("void cudnn::ops::nchwToNhwcKernel<float, float>(P)", "cuDNN", "layout", "float32", "", "", None),
    ("void cudnn::bn_fw_tr_1C11_singleread<float, 512>(P)", "cuDNN", "normalization", "float32", "", "", None),
    ("attn_fwd", "AOTriton", "attention", "", "", "", True),
    (ADD, "PyTorch", "elementwise", "bfloat16", "", "", None),
    ("ncclDevKernel_AllReduce_Sum_bf16_RING_LL(A)", "NCCL", "communication", "bfloat16", "", "", None),
    ("Memcpy DtoD (Device -> Device)", "driver", "copy", "", "", "", None),
    ("Memcpy HtoD (Pageable -> Device)", "driver", "transfer", "", "", "", None),
    ("Memset (Device)", "driver", "fill", "", "", "", None),
]


@pytest.mark.parametrize("case", KNOWN, ids=lambda case: case[0][:40])
def test_what_a_name_tells(case):
    name, library, operation, dtype, tile, layout, tensor_core = case
    kernel = decode(name)
    assert (kernel.library, kernel.operation, kernel.dtype) == (library, operation, dtype)
    assert (kernel.tile, kernel.layout, kernel.tensor_core) == (tile, layout, tensor_core)


@pytest.mark.parametrize(
    ("name", "short"),
    [
        (CLAMP, "clamp float32 vec4"),
        (ADD, "add bfloat16 vec4"),
        ("ncclKernel_SendRecv_RING_SIMPLE_Sum_int8_t(ncclDevComm*)", "NCCL send recv ring SIMPLE"),
        ("triton_per_fused_add_native_layer_norm_12", "triton per add native_layer_norm #12"),
        (MEAN, "mean reduction float32 block 512"),
    ],
)
def test_short_forms(name, short):
    assert decode(name).short == short


@pytest.mark.parametrize(
    ("name", "fused", "operation"),
    [
        ("triton_poi_fused__unsafe_view_mul_silu_2", ("_unsafe_view", "mul", "silu"), "fused"),
        ("triton_red_fused_add_mean_mul_pow_rsqrt_0", ("add", "mean", "mul", "pow", "rsqrt"), "fused"),
        ("triton_tem_fused_addmm_relu_3", ("addmm", "relu"), "matmul"),
        ("triton_poi_fused_relu_0_0d1d2de", ("relu",), "fused"),
        ("triton__0d1d2d3d", (), "fused"),
    ],
)
def test_generated_kernels_name_their_operators(name, fused, operation):
    assert (decode(name).fused, decode(name).operation) == (fused, operation)


@pytest.mark.parametrize(
    "name",
    [
        "ncclDevKernel_Generic_1(ncclDevKernelArgsStorage<4096ul>)",
        "ncclSymkDevKernel_AllReduce_RSxLDMC_AGxSTMC_sum_bf16",
        "mscclKernel_Sum_hip_bfloat16_Simple_false(ncclDevComm*)",
        "void vllm::cross_device_reduce_1stage<__half, 2>(vllm::RankData*)",
        "void aiter::reduce_scatter_cross_device_store<__hip_bfloat16, 8>(aiter::RankData*)",
        "void quickreduce::allreduce_prototype_twoshot<AllReduceTwoshot<__half, CodecQ4<__half, 4> >, __half>()",
        "void tensorrt_llm::kernels::oneShotAllReduceKernel<__nv_bfloat16, 8, true, true>(AllReduceParams)",
        "void flashinfer::trtllm_allreduce_fusion::allreduce_fusion_kernel_oneshot_lamport<1, __nv_bfloat16, 8>()",
        "moefinalize_allreduce_fusion_kernel_oneshot_lamport<__nv_bfloat16, 8>()",
        "void moeA2ADispatchKernel<8, false>(int const*)",
        "void deep_ep::internode_ll::combine<false, 7168>(void*)",
        "void mori::moe::EpDispatchIntraNodeKernel<hip_bfloat16>(Args)",
        "void (anonymous namespace)::multimem_one_shot_reduce_kernel<c10::BFloat16, 16>()",
        "void (anonymous namespace)::two_shot_all_reduce_kernel<c10::BFloat16, 16, 8>()",
        "void nvshmemi_barrier_on_stream_kernel<1>(int)",
        "void userbuffers_fp16_sum_inplace_gpu_rr_rs<2>(int, int)",
        "void deep_ep::intranode::notify_dispatch<8>(int const*, int*)",
        "void deep_ep::hybrid_ep::dispatch_kernel<64, 3>(Params)",
        "void flashinfer::trtllm_alltoall::moeAllToAllKernel<true>(Params)",
        "void tensorrt_llm::kernels::fusedMoeCommKernel<8>(FusedMoeParams)",
        "void sglang::custom_op::all_reduce_two_shot<__half, 8>(Params)",
        "void mscclpp::allgather_ring(int)",
        "void (anonymous namespace)::my_all2all_push<float>(float*)",
        "kernel_reduce_scatter_ring_push",
    ],
)
def test_kernels_that_communicate_are_known_by_their_makers(name):
    assert decode(name).operation == "communication"


@pytest.mark.parametrize(
    "name",
    [
        "__amd_rocclr_copyBuffer",
        "void at::native::reduce_kernel<512, 1, at::native::ReduceOp<float> >()",
        "void cub::DeviceReduceKernel<float>()",
        "void vllm::moe::topkGating<8, 256>()",
        "local_device_load_rmsnorm_512n",
        "void moe_permute_dispatch_kernel<float>()",
        "void deep_ep::layout::get_dispatch_layout<256, 32, 8>(long const*)",
        "void deep_ep::intranode::get_dispatch_layout<256, 32, 8>(long const*)",
        "void cub::DeviceReduceByKeyKernel<cub::DispatchReduceByKey<long*, long*> >()",
        "void at::native::vectorized_gather_kernel<16, long>(char*, char*, long*, int)",
        "void at::native::_scatter_gather_elementwise_kernel<128, 8>(int)",
        "void at::native::elementwise_kernel<128, 4, at::native::dispatch_all_reduce<float> >(int)",
        "void oneflow::softmax_warp_impl<float, WarpAllReduce>(int)",
        "void blockAllReduceSum<float>(float*)",
        "void fastertransformer::warp_all_reduce_max<float>(float*)",
        "void flash::flash_fwd_splitkv_combine_kernel<Flash_fwd_kernel_traits<128> >(Params)",
        "void (anonymous namespace)::groupnorm_kernel_dispatch_down<__hip_bfloat16, 1024u>(unsigned int)",
        "void moe::combine_kernel<float>(float*)",
        "triton_poi_fused_all_gather_into_tensor_add_0",
        "void kernel_allgather_gemm<8>(int)",
        "void cutlass::Kernel2<AllGatherGemm>(Params)",
    ],
)
def test_kernels_that_stay_on_their_device_are_not(name):
    assert decode(name).operation != "communication"


def test_mangled_names_are_read_by_their_identifiers():
    name = "_ZN2ck16tensor_operation6device12_GLOBAL__N_139kernel_grouped_conv_fwd_xdl_cshuffle_v3INS_34Grid"
    assert (decode(name).library, decode(name).operation) == ("Composable Kernel", "convolution")


def test_unknown_names_keep_their_own_words():
    kernel = decode("void (anonymous namespace)::my_thing<int>(int)")
    assert (kernel.short, kernel.known) == ("my_thing", False)


def test_names_that_read_alike_get_a_mark():
    shorts = distinct([TENSILE + "_A", TENSILE + "_B", ADD])
    assert len({*shorts.values()}) == 3
    assert shorts[ADD] == decode(ADD).short
    assert all(len(short) <= LONGEST for short in shorts.values())


def test_no_text_is_too_strange():
    generator = random.Random(0)
    names = [case[0] for case in KNOWN] + [CLAMP]
    for _ in range(3000):
        a, b = generator.choice(names), generator.choice(names)
        cut = a[: generator.randrange(len(a) + 1)] + b[generator.randrange(len(b) + 1) :]
        noise = "".join(generator.choices(string.printable + "é\ud800", k=20))
        for text in (cut, noise, "", "_Z", "_Z99", "triton_", "<", ">>(("):
            kernel = decode(text)
            assert kernel.short
            assert len(kernel.short) <= LONGEST
            assert kernel.operation in OPERATIONS


@pytest.mark.parametrize(
    ("name", "casts", "streams"),
    [
        (
            AT + "unrolled_elementwise_kernel<at::native::bfloat16_copy_kernel_cuda(at::TensorIteratorBase&)>()",
            True,
            False,
        ),
        (AT + "vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>>()", False, False),
        ("void gemv2T_kernel_val<int, int, float, float, float, float, 128, 16, 4, 4, false>()", False, True),
        ("void cublasLt::epilogue::impl::globalKernel<8, 32, float, float, float>()", False, True),
        ("volta_sgemm_64x64_nt", False, False),
    ],
)
def test_casts_and_products_limited_by_memory_are_known(name, casts, streams):
    kernel = decode(name)
    assert (kernel.casts, kernel.streams_a_matrix) == (casts, streams)


@pytest.mark.parametrize("space", sorted({start.removesuffix("::") for start, _ in _LIBRARIES}))
@pytest.mark.parametrize("more", ["", "_gpu"])
def test_the_name_of_a_library_says_nothing_of_what_its_kernel_does(space, more):
    """Neither "gemm" in "fbgemm_gpu" nor "transform" in "transformer_engine"."""
    within = decode(f"void {space}{more}::frobnicate_kernel<float>(float*)")
    assert (within.operation, within.known) == ("other", False)
    assert decode(f"void {space}{more}::frobnicate_softmax_kernel<float>(float*)").operation == "softmax"


@pytest.mark.parametrize(
    ("name", "operation"),
    [
        ("void fbgemm_gpu::permute_indices_weights_kernel<false, int>(int)", "indexing"),
        ("void fbgemm_gpu::_block_bucketize_sparse_features_cuda_kernel1<int, int>(int)", "indexing"),
        ("void fbgemm_gpu::grouped_gemm_kernel<float>(int)", "matmul"),
        ("void linearize_index_kernel<long>(int)", "indexing"),
        ("void linear_kernel<float>(int)", "matmul"),
    ],
)
def test_kernels_of_embedding_tables_are_no_products(name, operation):
    assert decode(name).operation == operation
