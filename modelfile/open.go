package modelfile

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/realizar/realizar/tensor"
)

// Open opens a model: a GGUF file, a safetensors file, or a folder as model hubs
// lay it out. What a file is shows in its content; its name does not matter.
//
// Beside a safetensors file, config.json and the other files that [File.Asset]
// names are looked for in the same folder. In a folder the weights are, whichever
// is there first: the shards that model.safetensors.index.json lists,
// model.safetensors, the only file whose name ends in .safetensors, the only one
// whose name ends in .gguf, or all of these when they are the parts of one model.
//
// A GGUF file that is one of the parts that llama.cpp's gguf-split writes, named
// PREFIX-00001-of-00003.gguf and so on, stands for all of them: they are looked for
// in its folder.
//
// The name of a model that is part of the program ([Register]) opens that one.
//
// The weights are mapped, not read, and must not change while the file is open.
// Whoever reads them does so within [File.Guard], or [tensor.Guard] where there is
// no File: a file that is cut short is an error then, and ends the process otherwise.
//
// Weights that config.json calls quantised, by FP8 with scales, GPTQ, AWQ or
// compressed-tensors, lie in several tensors each: [File.Tensors] has one in their
// place, whose rows are made of them when they are read. Scales of activations, of
// keys and of values are left out, as this project never rounds those to FP8.
//
// Errors wrap [ErrNotModel] when there is no model at path, [ErrFormat] when a
// file lies about itself, [ErrUnsupported] when it holds what this package does
// not read, or what the system said.
func Open(path string) (*File, error) {
	f := &File{
		path:   path,
		meta:   new(Meta),
		byName: make(map[string]*tensor.Tensor),
		assets: make(map[string][]byte),
		memory: allowance{most: headerMemory},
	}
	err := f.Guard(f.open)
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

func (f *File) open() error {
	if data, ok := builtins[f.path]; ok {
		return f.openBuiltin(data)
	}
	if err := refuseRemote(f.path); err != nil {
		return err
	}
	info, err := os.Stat(f.path)
	switch {
	case err == nil && info.IsDir():
		return f.openFolder()
	case errors.Is(err, fs.ErrNotExist) && meantForHub(f.path):
		return fmt.Errorf("modelfile: %w; if it is the name of a model on a hub, download the model first and give the path of its folder: realizar reads local files", err)
	}
	if err := f.openFile(f.path); err != nil {
		return err
	}
	if f.format == Safetensors {
		return f.openAssets(filepath.Dir(f.path))
	}
	return nil
}

// openFile opens a file of weights, and the others of its model if it says that it
// is one of several.
func (f *File) openFile(path string) error {
	m, err := openMapping(path)
	if err != nil {
		return err
	}
	return f.openMapped(m)
}

// openMapped opens the file that m is of.
func (f *File) openMapped(m *mapping) error {
	path := m.path
	meta, tensors, err := f.read(m)
	if err != nil {
		return err
	}
	count, err := splitCount(path, meta)
	if err != nil {
		return err
	}
	if count > 1 {
		return f.openParts(path, meta, tensors)
	}
	f.meta = meta
	return f.addTensors(path, tensors)
}

// load maps one file of weights and reads it.
func (f *File) load(path string) (*Meta, []*tensor.Tensor, error) {
	m, err := openMapping(path)
	if err != nil {
		return nil, nil, err
	}
	return f.read(m)
}

// read returns the metadata of one file of weights, empty for safetensors, and its
// tensors. All files of a model have one format.
func (f *File) read(m *mapping) (*Meta, []*tensor.Tensor, error) {
	path := m.path
	f.mappings = append(f.mappings, m)
	f.size += int64(len(m.data))
	format, err := detect(path, m.data)
	if err != nil {
		return nil, nil, err
	}
	if f.format != 0 && f.format != format {
		return nil, nil, &FormatError{File: path, Offset: 0, Err: ErrFormat,
			Problem: fmt.Sprintf("a %v file where one of the %v files of a model is due", format, f.format)}
	}
	f.format = format
	if format == Safetensors {
		tensors, err := readSafetensors(path, m.data, &f.memory)
		return new(Meta), tensors, err
	}
	return readGGUF(path, m.data, &f.memory)
}

// addTensors adds the tensors of the file at path to the model, whose files have
// no name in common.
func (f *File) addTensors(path string, tensors []*tensor.Tensor) error {
	if len(f.tensors) == 0 {
		f.byName = make(map[string]*tensor.Tensor, len(tensors))
	}
	for _, t := range tensors {
		if _, ok := f.byName[t.Name]; ok {
			return &FormatError{File: path, Tensor: t.Name, Offset: -1, Err: ErrFormat,
				Problem: "another file of the model has a tensor of this name; download all of them anew, of one version"}
		}
		f.byName[t.Name] = t
	}
	f.tensors = append(f.tensors, tensors...)
	return nil
}

// adviseDownload adds to the error of one of several files which of them it is, and
// that it is to be downloaded if that helps.
func adviseDownload(err error, file string) error {
	for _, kind := range []error{fs.ErrNotExist, ErrNotModel, ErrFormat} {
		if errors.Is(err, kind) {
			return fmt.Errorf("%w (download %s into the same folder)", err, file)
		}
	}
	return fmt.Errorf("%w (%s)", err, strings.TrimSuffix(file, ","))
}

// detect returns the format of a file by how it begins. safetensors has no magic,
// but after the header's length always an opening brace.
func detect(path string, data []byte) (Format, error) {
	switch {
	case bytes.HasPrefix(data, []byte(ggufMagic)):
		return GGUF, nil
	case len(data) > safetensorsPrefix && data[safetensorsPrefix] == '{':
		return Safetensors, nil
	}
	// A file that only calls itself safetensors is told what it lacks.
	if filepath.Ext(path) == ".safetensors" && !bytes.HasPrefix(data, []byte(lfsPointer)) {
		problem := fmt.Sprintf("the file ends after %d bytes, before its header", len(data))
		if len(data) > safetensorsPrefix {
			problem = fmt.Sprintf("a header of %d bytes that begins with %q instead of '{'",
				binary.LittleEndian.Uint64(data), data[safetensorsPrefix])
		}
		return 0, &FormatError{File: path, Offset: 0, Problem: problem, Err: ErrFormat}
	}
	problem := fmt.Sprintf("it begins with %q, and neither as GGUF nor as safetensors does", data[:min(len(data), 8)])
	switch {
	case bytes.HasPrefix(data, []byte(lfsPointer)):
		problem = "it is a Git LFS pointer to the file meant; fetch that with git lfs pull"
	case bytes.HasPrefix(data, []byte("PK\x03\x04")), bytes.HasPrefix(data, []byte{0x80, 2}):
		problem = "it looks like a PyTorch checkpoint; convert it to safetensors or GGUF"
	}
	return 0, fmt.Errorf("modelfile: %s: %w: %s", path, ErrNotModel, problem)
}

// lfsPointer is how the small file begins that stands in the place of a large one
// in a repository cloned without Git LFS.
const lfsPointer = "version https://git-lfs"
