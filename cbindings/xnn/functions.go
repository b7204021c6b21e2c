package xnn

import "unsafe"

// Functions are the library's entry points, with C's argument order, each a field tagged with its C
// name. Value IDs of node definitions are those stored by value definitions; flags are the node's.
// The numbers of datatypes and operators depend on the library's [Soname].
type Functions struct {
	Initialize func(allocator Address) Status `c:"xnn_initialize"`

	CreateSubgraph func(externalValueIDs, flags uint32, out *Subgraph) Status `c:"xnn_create_subgraph"`
	DeleteSubgraph func(Subgraph) Status                                      `c:"xnn_delete_subgraph"`

	// Values. data points to a constant's bytes, 0 for a computed value; it and scale must stay
	// valid until the runtime created from the subgraph is deleted.

	DefineTensorValue func(s Subgraph, datatype int32, numDims uint, dims *uint,
		data Address, externalID, flags uint32, out *uint32) Status `c:"xnn_define_tensor_value"`
	DefineQuantizedTensorValue func(s Subgraph, datatype, zeroPoint int32, scale float32, numDims uint, dims *uint,
		data Address, externalID, flags uint32, out *uint32) Status `c:"xnn_define_quantized_tensor_value"`
	DefineChannelwiseQuantizedTensorValue func(s Subgraph, datatype, zeroPoint int32, scale Address, numDims, channelDim uint, dims *uint,
		data Address, externalID, flags uint32, out *uint32) Status `c:"xnn_define_channelwise_quantized_tensor_value_v2"`
	DefineBlockwiseQuantizedTensorValue func(s Subgraph, datatype, zeroPoint int32, scale Address, numDims, channelDim, blockSize uint, dims *uint,
		data Address, externalID, flags uint32, out *uint32) Status `c:"xnn_define_blockwise_quantized_tensor_value"`
	DefineDynamicallyQuantizedTensorValue func(s Subgraph, datatype int32, numDims, numNonbatchDims uint, dims *uint,
		externalID, flags uint32, out *uint32) Status `c:"xnn_define_dynamically_quantized_tensor_value"`

	// Nodes. params may be nil if the operator has none.

	DefineUnary func(s Subgraph, operator int32, params *UnaryParams,
		input, output, flags uint32) Status `c:"xnn_define_unary"`
	DefineBinary func(s Subgraph, operator int32, params *BinaryParams,
		input1, input2, output, flags uint32) Status `c:"xnn_define_binary"`
	DefineConvolution2D func(s Subgraph, top, right, bottom, left, kernelHeight, kernelWidth,
		subsamplingHeight, subsamplingWidth, dilationHeight, dilationWidth, groups uint32,
		groupInputChannels, groupOutputChannels uint, outputMin, outputMax float32,
		input, filter, bias, output, flags uint32) Status `c:"xnn_define_convolution_2d"`
	DefineDepthwiseConvolution2D func(s Subgraph, top, right, bottom, left, kernelHeight, kernelWidth,
		subsamplingHeight, subsamplingWidth, dilationHeight, dilationWidth, depthMultiplier uint32,
		inputChannels uint, outputMin, outputMax float32,
		input, filter, bias, output, flags uint32) Status `c:"xnn_define_depthwise_convolution_2d"`
	DefineDeconvolution2D func(s Subgraph, top, right, bottom, left, adjustmentHeight, adjustmentWidth,
		kernelHeight, kernelWidth, upsamplingHeight, upsamplingWidth, dilationHeight, dilationWidth, groups uint32,
		groupInputChannels, groupOutputChannels uint, outputMin, outputMax float32,
		input, filter, bias, output, flags uint32) Status `c:"xnn_define_deconvolution_2d"`
	DefineFullyConnected func(s Subgraph, outputMin, outputMax float32,
		input, filter, bias, output, flags uint32) Status `c:"xnn_define_fully_connected"`
	DefineBatchMatrixMultiply func(s Subgraph, input1, input2, output, flags uint32) Status `c:"xnn_define_batch_matrix_multiply"`
	DefineAveragePooling2D    func(s Subgraph, top, right, bottom, left, poolingHeight, poolingWidth,
		strideHeight, strideWidth uint32, outputMin, outputMax float32,
		input, output, flags uint32) Status `c:"xnn_define_average_pooling_2d"`
	DefineMaxPooling2D func(s Subgraph, top, right, bottom, left, poolingHeight, poolingWidth,
		strideHeight, strideWidth, dilationHeight, dilationWidth uint32, outputMin, outputMax float32,
		input, output, flags uint32) Status `c:"xnn_define_max_pooling_2d"`
	DefineStaticReduce func(s Subgraph, operator int32, numAxes uint, axes *uint,
		input, output, flags uint32) Status `c:"xnn_define_static_reduce"`
	DefineSoftmax           func(s Subgraph, input, output, flags uint32) Status `c:"xnn_define_softmax"`
	DefineCopy              func(s Subgraph, input, output, flags uint32) Status `c:"xnn_define_copy"`
	DefineStaticConstantPad func(s Subgraph, pre, post *uint, value float32,
		input, output, flags uint32) Status `c:"xnn_define_static_constant_pad"`
	DefineStaticReshape func(s Subgraph, numDims uint, shape *uint,
		input, output, flags uint32) Status `c:"xnn_define_static_reshape"`
	DefineStaticResizeBilinear2D func(s Subgraph, height, width uint,
		input, output, flags uint32) Status `c:"xnn_define_static_resize_bilinear_2d"`
	DefineStaticSlice func(s Subgraph, numDims uint, offsets, sizes *uint,
		input, output, flags uint32) Status `c:"xnn_define_static_slice"`
	DefineStaticTranspose func(s Subgraph, numDims uint, perm *uint,
		input, output, flags uint32) Status `c:"xnn_define_static_transpose"`
	DefineConcatenate2 func(s Subgraph, axis int32, input1, input2, output, flags uint32) Status                         `c:"xnn_define_concatenate2"`
	DefineConcatenate3 func(s Subgraph, axis int32, input1, input2, input3, output, flags uint32) Status                 `c:"xnn_define_concatenate3"`
	DefineConcatenate4 func(s Subgraph, axis int32, input1, input2, input3, input4, output, flags uint32) Status         `c:"xnn_define_concatenate4"`
	DefineConcatenate5 func(s Subgraph, axis int32, input1, input2, input3, input4, input5, output, flags uint32) Status `c:"xnn_define_concatenate5"`

	// Runtimes. A runtime, and a workspace, are used by one goroutine at a time. A threadpool may
	// serve several runtimes concurrently.

	CreateWorkspace  func(out *Workspace) Status `c:"xnn_create_workspace"`
	ReleaseWorkspace func(Workspace) Status      `c:"xnn_release_workspace"`
	CreateRuntime    func(s Subgraph, cache WeightsCache, w Workspace, pool Threadpool, flags uint32,
		out *Runtime) Status `c:"xnn_create_runtime_v4"`
	DeleteRuntime         func(Runtime) Status                                                 `c:"xnn_delete_runtime"`
	ReshapeExternalValue  func(r Runtime, externalID uint32, numDims uint, dims *uint) Status  `c:"xnn_reshape_external_value"`
	GetExternalValueShape func(r Runtime, externalID uint32, numDims *uint, dims *uint) Status `c:"xnn_get_external_value_shape"`
	ReshapeRuntime        func(Runtime) Status                                                 `c:"xnn_reshape_runtime"`
	// PlanRuntime reshapes a runtime, plans its memory for the current shapes, and then acts as
	// SetupRuntime.
	PlanRuntime func(r Runtime, numValues uint, values *ExternalValue) Status `c:"xnn_setup_runtime"`
	// SetupRuntime stores the addresses of values until the next setup.
	SetupRuntime            func(r Runtime, numValues uint, values *ExternalValue) Status                      `c:"xnn_setup_runtime_v2"`
	InvokeRuntime           func(Runtime) Status                                                               `c:"xnn_invoke_runtime"`
	GetRuntimeProfilingInfo func(r Runtime, info ProfileInfo, size uint, value *byte, sizeNeeded *uint) Status `c:"xnn_get_runtime_profiling_info"`

	BuildIdentifierData func() unsafe.Pointer `c:"xnn_experimental_get_build_identifier_data"`
	BuildIdentifierSize func() uint           `c:"xnn_experimental_get_build_identifier_size"`

	// The thread pool loaded with the library.

	CreateThreadpool  func(threads uint) Threadpool `c:"pthreadpool_create"`
	DestroyThreadpool func(Threadpool)              `c:"pthreadpool_destroy"`
	ThreadsCount      func(Threadpool) uint         `c:"pthreadpool_get_threads_count"`
}
