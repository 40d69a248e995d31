package modelfile

import "fmt"

// builtins are the models that are part of the program, by name.
var builtins = map[string][]byte{}

// Register makes data, a GGUF or safetensors file, a model that [Open] opens by name
// alone, without touching the disk. A file of that name is opened by a path such as
// ./name. Packages register models while they are initialised; data must not be
// changed. A second model of one name is a panic.
func Register(name string, data []byte) {
	if _, ok := builtins[name]; ok {
		panic(fmt.Sprintf("modelfile: two models are registered as %q", name))
	}
	builtins[name] = data
}

// Registered reports whether a model is part of the program under that name.
func Registered(name string) bool {
	_, ok := builtins[name]
	return ok
}

// openBuiltin opens a model that is part of the program.
func (f *File) openBuiltin(data []byte) error {
	nothing := func() error { return nil }
	return f.openMapped(&mapping{path: f.path, data: data, unmap: nothing, resident: true})
}
