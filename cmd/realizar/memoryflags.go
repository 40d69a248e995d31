package main

import "github.com/realizar/realizar"

// memoryFlags say how much memory a model may take, and what it keeps there.
type memoryFlags struct {
	KVCache       string      `name:"kv-cache" default:"auto" enum:"auto,f16,q8,f32" placeholder:"auto|f16|q8|f32" group:"model" help:"Numbers to keep keys and values in. auto is f16, or f32 beside --activations f32; q8 takes about half of f16's memory."`
	GPUMemory     memoryLimit `name:"gpu-memory" placeholder:"SIZE|FRACTION" group:"model" help:"What of a GPU's memory weights, the cache and a step may take together: 8GiB, 0.5 or 50% for example. Default: what is free, where the cache takes half of what the weights leave at most."`
	StreamWeights string      `default:"auto" enum:"auto,always,never" placeholder:"auto|always|never" group:"model" help:"Whether weights come from the host's memory to a GPU when they are needed. auto streams those that it has no room for, always all that can."`
	Memory        byteSize    `default:"0" placeholder:"SIZE" group:"model" help:"What of the host's memory may be taken, 8GiB for example: on the CPU by weights laid out anew, the cache and a step together, beside a GPU by weights that stream and --kv-host. Default: on the CPU the cache takes half of what is free beside the weights at most; beside a GPU three quarters of what is free."`
	KVHost        byteSize    `name:"kv-host" default:"0" placeholder:"SIZE" group:"model" help:"The host's memory for parts of the cache that the device has no room for. Default: none."`
}

// apply sets the options that the flags select.
func (f *memoryFlags) apply(o *realizar.Options) {
	o.Cache, _ = realizar.ParseCache(f.KVCache) // the parser has checked the values
	o.StreamWeights, _ = realizar.ParseStreamWeights(f.StreamWeights)
	o.DeviceMemory, o.Memory, o.HostCache = realizar.MemoryLimit(f.GPUMemory), int64(f.Memory), int64(f.KVHost)
}
