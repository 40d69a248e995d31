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

// Open opens a model: a GGUF file, a safetensors file, or a folder with the layout of model hubs.
// The format is detected by content, not by name.
//
// For a safetensors file, Open reads config.json and the other files that [File.Asset] lists from
// the same folder. In a folder, the weights are the first of these that exists: the shards that
// model.safetensors.index.json lists, model.safetensors, the only file whose name ends in
// .safetensors, the only file whose name ends in .gguf, or all files with such a suffix if they are
// the parts of one model.
//
// If a GGUF file is a part that llama.cpp's gguf-split has written, named
// PREFIX-00001-of-00003.gguf and so on, Open also opens the other parts in its folder.
//
// The name of a built-in model ([Register]) opens that model.
//
// The weights are mapped, not read, and must not change while the file is open. Read them within
// [File.Guard], or within [tensor.Guard] if there is no File: then a truncated file causes an error
// instead of a crash.
//
// If config.json describes quantized weights (FP8 with scales, GPTQ, AWQ, compressed-tensors or
// MXFP4), each weight is stored as several tensors. [File.Tensors] has one tensor in their place,
// whose rows are computed when they are read. Scales of activations, keys and values are left out,
// because this project never rounds those to FP8.
//
// Errors wrap [ErrNotModel] if there is no model at path, [ErrFormat] if a file is inconsistent,
// [ErrUnsupported] if it holds something that this package does not read, or the system's error.
func Open(path string) (*File, error) { return open(path, (*File).open) }

// OpenBytes opens data, the contents of a GGUF or safetensors file, as [Open] opens a file. name
// stands in errors where Open has the path. data must not change while the file is open.
func OpenBytes(name string, data []byte) (*File, error) {
	return open(name, func(f *File) error { return f.openBytes(data) })
}

func open(path string, load func(*File) error) (*File, error) {
	f := &File{
		path:   path,
		meta:   new(Meta),
		byName: make(map[string]*tensor.Tensor),
		assets: make(map[string][]byte),
		memory: allowance{most: headerMemory},
	}
	err := f.Guard(func() error { return load(f) })
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

func (f *File) open() error {
	if data, ok := builtins[f.path]; ok {
		return f.openBytes(data)
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

// openFile opens a weights file, and the other files of the model if it is one of several.
func (f *File) openFile(path string) error {
	m, err := openMapping(path)
	if err != nil {
		return err
	}
	return f.openMapped(m)
}

// openMapped opens the mapped file m.
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

// load maps and reads one weights file.
func (f *File) load(path string) (*Meta, []*tensor.Tensor, error) {
	m, err := openMapping(path)
	if err != nil {
		return nil, nil, err
	}
	return f.read(m)
}

// read returns the metadata of one weights file, empty for safetensors, and its tensors. All files
// of a model must have the same format.
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
			Problem: fmt.Sprintf("a %v file among the %v files of a model", format, f.format)}
	}
	f.format = format
	if format == Safetensors {
		tensors, err := readSafetensors(path, m.data, &f.memory)
		return new(Meta), tensors, err
	}
	return readGGUF(path, m.data, &f.memory)
}

// addTensors adds the tensors of the file at path to the model. No two files may have a tensor of
// the same name.
func (f *File) addTensors(path string, tensors []*tensor.Tensor) error {
	if len(f.tensors) == 0 {
		f.byName = make(map[string]*tensor.Tensor, len(tensors))
	}
	for _, t := range tensors {
		if _, ok := f.byName[t.Name]; ok {
			return &FormatError{File: path, Tensor: t.Name, Offset: -1, Err: ErrFormat,
				Problem: "another file of the model has a tensor of this name; download all of them again, from one version"}
		}
		f.byName[t.Name] = t
	}
	f.tensors = append(f.tensors, tensors...)
	return nil
}

// adviseDownload adds the name of one of several files to its error, and the advice to download it
// if that helps.
func adviseDownload(err error, file string) error {
	for _, kind := range []error{fs.ErrNotExist, ErrNotModel, ErrFormat} {
		if errors.Is(err, kind) {
			return fmt.Errorf("%w (download %s into the same folder)", err, file)
		}
	}
	return fmt.Errorf("%w (%s)", err, strings.TrimSuffix(file, ","))
}

// detect returns the format of a file by its first bytes. safetensors has no magic number, but an
// opening brace always follows the header's length.
func detect(path string, data []byte) (Format, error) {
	switch {
	case bytes.HasPrefix(data, []byte(ggufMagic)):
		return GGUF, nil
	case len(data) > safetensorsPrefix && data[safetensorsPrefix] == '{':
		return Safetensors, nil
	}
	// The file's name claims safetensors: report what is missing.
	if filepath.Ext(path) == ".safetensors" && !bytes.HasPrefix(data, []byte(lfsPointer)) {
		problem := fmt.Sprintf("the file ends after %d bytes, before its header"+incomplete, len(data))
		if len(data) > safetensorsPrefix {
			problem = fmt.Sprintf("a header of %d bytes that begins with %q instead of '{'",
				binary.LittleEndian.Uint64(data), data[safetensorsPrefix])
		}
		return 0, &FormatError{File: path, Offset: 0, Problem: problem, Err: ErrFormat}
	}
	problem := fmt.Sprintf("it begins with %q, unlike GGUF and safetensors files", data[:min(len(data), 8)])
	switch {
	case bytes.HasPrefix(data, []byte(lfsPointer)):
		problem = "it is only a Git LFS pointer; fetch the file with git lfs pull"
	case bytes.HasPrefix(data, []byte("PK\x03\x04")), bytes.HasPrefix(data, []byte{0x80, 2}):
		problem = "it looks like a PyTorch checkpoint; convert it to safetensors or GGUF"
	}
	return 0, fmt.Errorf("modelfile: %s: %w: %s", path, ErrNotModel, problem)
}

// lfsPointer is the start of the small file that replaces a large one in a repository cloned
// without Git LFS.
const lfsPointer = "version https://git-lfs"
