package main

import "github.com/realizar/realizar"

// memoryFlags say how much memory a model may take, and what it keeps there.
type memoryFlags struct {
	KVCache       string      `name:"kv-cache" default:"auto" enum:"auto,f16,q8,f8,f32" placeholder:"auto|f16|q8|f8|f32" group:"model" help:"Format of the KV cache. auto is f16, or f32 with --activations f32; q8 and f8 take about half the memory of f16."`
	GPUMemory     memoryLimit `name:"gpu-memory" placeholder:"SIZE|FRACTION" group:"model" help:"Limit of GPU memory for weights, KV cache and a step together, such as 8GiB, 0.5 or 50%. Default: what is free, of which the KV cache takes at most half of what the weights leave."`
	StreamWeights string      `default:"auto" enum:"auto,always,never" placeholder:"auto|always|never" group:"model" help:"Whether weights stream from host memory to the GPU when a step needs them: auto streams those that do not fit in GPU memory, always all that can stream."`
	Memory        byteSize    `default:"0" placeholder:"SIZE" group:"model" help:"Limit of host memory, such as 8GiB: on the CPU for repacked weights, KV cache and a step together, on a GPU for streamed weights and --kv-host. Default: on the CPU, the KV cache takes at most half of the memory beside the weights; on a GPU, three quarters of the free memory."`
	KVHost        byteSize    `name:"kv-host" default:"0" placeholder:"SIZE" group:"model" help:"Host memory for KV cache pages that do not fit on the device. Default: none."`
}

// apply sets the options that the flags select.
func (f *memoryFlags) apply(o *realizar.Options) {
	o.Cache, _ = realizar.ParseCache(f.KVCache) // the parser has checked the values
	o.StreamWeights, _ = realizar.ParseStreamWeights(f.StreamWeights)
	o.DeviceMemory, o.Memory, o.HostCache = realizar.MemoryLimit(f.GPUMemory), int64(f.Memory), int64(f.KVHost)
}
