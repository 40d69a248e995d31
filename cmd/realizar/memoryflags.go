package main

import "github.com/realizar/realizar"

// memoryFlags say what memory a model may take, and what it keeps there.
type memoryFlags struct {
	KVCache string   `name:"kv-cache" default:"auto" enum:"auto,f16,q8,f32" placeholder:"auto|f16|q8|f32" group:"model" help:"Numbers to keep keys and values in. auto is f16, or f32 beside --activations f32; q8 takes about half of f16's memory."`
	Memory  byteSize `default:"0" placeholder:"SIZE" group:"model" help:"What weights laid out anew, the cache and a step may take together, 8GiB for example. Default: the cache takes half of what is free beside the weights at most."`
	KVHost  byteSize `name:"kv-host" default:"0" placeholder:"SIZE" group:"model" help:"The host's memory for parts of the cache that the device has no room for. Default: none."`
}

// apply sets what the flags say.
func (f *memoryFlags) apply(o *realizar.Options) {
	o.Cache, _ = realizar.ParseCache(f.KVCache) // the parser knows the values
	o.Memory, o.HostCache = int64(f.Memory), int64(f.KVHost)
}
