// Package modelfile reads GGUF files, safetensors files and the folders of model hubs through one
// interface: typed metadata and named tensors over a memory mapping. It knows the syntax of the
// files. What keys and tensors mean is up to its callers.
//
// An inconsistent file is an error that names the file, the tensor or key, and the offset. Reading
// allocates memory in proportion to what a file holds, never to what it claims.
package modelfile

import (
	"errors"
	"fmt"
	"strings"

	"github.com/realizar/realizar/tensor"
)

// A Format is the format of a model's weights files.
type Format uint8

// The formats that [Open] reads.
const (
	GGUF Format = iota + 1
	Safetensors
)

// String returns the format's name, "GGUF" or "safetensors".
func (f Format) String() string {
	switch f {
	case GGUF:
		return "GGUF"
	case Safetensors:
		return "safetensors"
	}
	return "unknown"
}

// A File is an opened model: one file, or the files of one folder. It is immutable until it is
// closed, and safe for concurrent use.
type File struct {
	format   Format
	path     string
	size     int64
	meta     *Meta
	tensors  []*tensor.Tensor
	byName   map[string]*tensor.Tensor
	assets   map[string][]byte
	mappings []*mapping
	memory   allowance // for the headers of all files
}

// Format returns the format of the weights.
func (f *File) Format() Format { return f.format }

// Path returns the path that was opened, of a file or folder.
func (f *File) Path() string { return f.path }

// Version identifies the weights files by their paths, sizes and times of modification: two
// files with equal versions have equal weights, unless a file was changed and its time set back.
func (f *File) Version() string {
	text := new(strings.Builder)
	for _, m := range f.mappings {
		fmt.Fprintf(text, "%q %d %d\n", m.path, len(m.data), m.modified)
	}
	return text.String()
}

// Size returns the total size of the weights files, in bytes.
func (f *File) Size() int64 { return f.size }

// Meta returns the metadata: the key/value pairs of the first GGUF file, or the flattened
// config.json of a safetensors folder. It is empty if there is none.
func (f *File) Meta() *Meta { return f.meta }

// Tensors returns the tensors in file order, starting with the first file. A tensor derived from
// several has the place of its main part. Callers must not modify the slice or the tensors.
func (f *File) Tensors() []*tensor.Tensor { return f.tensors }

// Tensor returns the tensor of that name and whether there is one.
func (f *File) Tensor(name string) (*tensor.Tensor, bool) {
	t, ok := f.byName[name]
	return t, ok
}

// Asset returns the content of a file that accompanies the weights, by its name in the folder, and
// whether the file exists: "config.json", "generation_config.json", "tokenizer.json",
// "tokenizer.model", "tokenizer_config.json", "special_tokens_map.json", "chat_template.jinja",
// "modules.json", "1_Pooling/config.json", and "additional_chat_templates/NAME.jinja". A GGUF file
// that was opened by its own path has no assets. The content stays valid after [File.Close];
// callers must not modify it.
func (f *File) Asset(name string) ([]byte, bool) {
	data, ok := f.assets[name]
	return data, ok
}

// Release tells the system that it may drop the memory pages of data, part of a tensor's Data,
// because it will rarely be read again. data stays readable. Memory outside the file is left alone.
// Release must not be called after [File.Close].
func (f *File) Release(data []byte) {
	for _, m := range f.mappings {
		if m.letGo(data) {
			return
		}
	}
}

// Close unmaps the file. The Data of its tensors must not be used afterwards: reading it may crash
// the process.
func (f *File) Close() error {
	var errs []error
	for _, m := range f.mappings {
		errs = append(errs, m.close())
	}
	return errors.Join(errs...)
}
