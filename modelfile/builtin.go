package modelfile

import "fmt"

// builtins are the models built into the program, by name.
var builtins = map[string][]byte{}

// Register makes data, the contents of a GGUF or safetensors file, a model that [Open] opens by
// name without touching the disk. To open a file of that name, use a path such as ./name. Packages
// register models during initialization. data must not change afterwards. Register panics if the
// name is already registered.
func Register(name string, data []byte) {
	if _, ok := builtins[name]; ok {
		panic(fmt.Sprintf("modelfile: two models are registered as %q", name))
	}
	builtins[name] = data
}

// Registered reports whether a model of that name is built into the program.
func Registered(name string) bool {
	_, ok := builtins[name]
	return ok
}

// openBytes opens a model that is in memory.
func (f *File) openBytes(data []byte) error {
	nothing := func() error { return nil }
	return f.openMapped(&mapping{path: f.path, data: data, unmap: nothing, resident: true})
}
