package modelfile

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/realizar/realizar/tensor"
)

// The fixed file names in a hub folder.
const (
	configName        = "config.json"
	weightsName       = "model.safetensors"
	tokenizerName     = "tokenizer.json"
	sentencePieceName = "tokenizer.model"
	indexName         = "model.safetensors.index.json"
	templatesName     = "additional_chat_templates"
)

// assetNames are the files that [File.Asset] returns, besides those in templatesName.
var assetNames = []string{
	configName,
	"generation_config.json",
	tokenizerName,
	sentencePieceName,
	"tokenizer_config.json",
	"special_tokens_map.json",
	"chat_template.jinja",
	"modules.json", "1_Pooling/config.json", // from sentence-transformers
}

// Limits on the files that accompany the weights, in bytes. Among known models the largest
// tokenizer.json have about 40 MB, the largest indices of shards 15 MB, and the largest other files
// 2 MB.
const (
	maxLargeAsset = 128 << 20
	maxIndex      = 32 << 20
	maxAsset      = 16 << 20
)

// assetLimit returns the maximum size of the file of that name, in bytes.
func assetLimit(name string) int64 {
	switch name {
	case tokenizerName, sentencePieceName:
		return maxLargeAsset
	case indexName:
		return maxIndex
	}
	return maxAsset
}

// indexEntryBytes is the memory that a tensor of an index takes besides its name: its slot in a map
// that has grown to size.
const indexEntryBytes = 224

// openFolder opens the weights of a folder and the files that accompany them.
func (f *File) openFolder() error {
	index, ok, err := readAsset(f.path, indexName)
	if err != nil {
		return err
	}
	if ok {
		err = f.openShards(index)
	} else {
		err = f.openOnly()
	}
	if err != nil {
		return err
	}
	return f.openAssets(f.path)
}

// openOnly opens the single model of a folder without an index.
func (f *File) openOnly() error {
	names, err := onlyWeights(f.path)
	if err != nil {
		return err
	}
	if err := f.openFile(filepath.Join(f.path, names[0])); err != nil {
		return err
	}
	if len(f.mappings) < len(names) { // a file looks like a part only by its name
		return ambiguous(f.path, names)
	}
	return nil
}

// onlyWeights returns the names of the weights files in a folder without an index: one file, or the
// parts of one model.
func onlyWeights(folder string) ([]string, error) {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return nil, fmt.Errorf("modelfile: %w", err)
	}
	byExt := make(map[string][]string)
	var names []string
	for _, e := range entries {
		if e.Name() == weightsName {
			return []string{weightsName}, nil
		}
		names = append(names, e.Name())
		if !e.IsDir() {
			ext := filepath.Ext(e.Name())
			byExt[ext] = append(byExt[ext], e.Name())
		}
	}
	for _, ext := range []string{".safetensors", ".gguf"} {
		if files := byExt[ext]; len(files) == 1 || len(files) > 1 && sameModel(files) {
			return files, nil
		}
	}
	candidates := slices.Concat(byExt[".safetensors"], byExt[".gguf"])
	switch {
	case len(candidates) > 0:
		return nil, ambiguous(folder, candidates)
	case len(names) > 0:
		return nil, fmt.Errorf("modelfile: %s: %w: no .safetensors and no .gguf file in the folder, only %s",
			folder, ErrNotModel, list(names))
	}
	return nil, fmt.Errorf("modelfile: %s: %w: the folder is empty", folder, ErrNotModel)
}

func ambiguous(folder string, candidates []string) error {
	return fmt.Errorf("modelfile: %s: %w: the folder has no %s, and %d files that could be the model (%s); give the path of one of them",
		folder, ErrNotModel, indexName, len(candidates), list(candidates))
}

// list joins the first few names for an error message.
func list(names []string) string {
	const most = 12
	var shown []string
	for _, name := range names[:min(len(names), most)] {
		if !printable(name) {
			name = clip(name)
		}
		shown = append(shown, name)
	}
	if len(names) > most {
		return fmt.Sprintf("%s and %d more", strings.Join(shown, ", "), len(names)-most)
	}
	return strings.Join(shown, ", ")
}

// openShards opens the shards that an index lists. The index's weight_map maps tensors to shards.
// Tensors that are not in the index are taken from the shard that has them.
func (f *File) openShards(index []byte) error {
	indexPath := filepath.Join(f.path, indexName)
	weightMap, shards, err := readIndex(indexPath, index)
	if err != nil {
		return err
	}
	f.format = Safetensors
	for _, shard := range shards {
		path := filepath.Join(f.path, shard)
		_, tensors, err := f.load(path)
		if err != nil {
			return adviseDownload(err, fmt.Sprintf("%s, which %s lists,", shard, indexName))
		}
		tensors = slices.DeleteFunc(tensors, func(t *tensor.Tensor) bool {
			where, ok := weightMap[t.Name]
			return ok && where != shard // a copy: the index names another shard
		})
		if err := f.addTensors(path, tensors); err != nil {
			return err
		}
	}
	for _, name := range slices.Sorted(maps.Keys(weightMap)) {
		if _, ok := f.byName[name]; !ok {
			return &FormatError{File: indexPath, Tensor: name, Offset: -1, Err: ErrFormat,
				Problem: fmt.Sprintf("listed in %s, which does not have it", weightMap[name])}
		}
	}
	return nil
}

// readIndex returns the shard of every tensor, and the sorted shards. A shard must be a plain file
// name, because a path could lead out of the folder.
func readIndex(path string, data []byte) (weightMap map[string]string, shards []string, err error) {
	memory := jsonAllowance(data)
	memory.most = min(memory.most, headerMemory-int64(len(data)))
	r := &indexReader{
		scanner:   jsonScanner{file: path, data: data, memory: memory},
		weightMap: make(map[string]string),
		shards:    make(map[string]string),
	}
	if err := r.index(); err != nil {
		return nil, nil, err
	}
	if len(r.weightMap) == 0 {
		return nil, nil, &FormatError{File: path, Offset: -1, Problem: "no tensors in weight_map", Err: ErrFormat}
	}
	return r.weightMap, slices.Sorted(maps.Keys(r.shards)), nil
}

// An indexReader parses an index of shards.
type indexReader struct {
	scanner   jsonScanner
	weightMap map[string]string // shard by tensor
	shards    map[string]string // interned shard names
}

func (r *indexReader) index() error {
	s := &r.scanner
	more, err := s.begin('{')
	for more {
		key, _, err := s.key()
		if err != nil {
			return err
		}
		if string(key) == "weight_map" {
			err = r.weights()
		} else {
			err = s.skip()
		}
		if err != nil {
			return err
		}
		if more, err = s.next('{'); err != nil {
			return err
		}
	}
	if err != nil {
		return err
	}
	return s.end()
}

// weights parses the weight_map.
func (r *indexReader) weights() error {
	s := &r.scanner
	more, err := s.begin('{')
	for more {
		name, at, err := s.key()
		if err != nil {
			return err
		}
		file, err := s.bytes()
		if err != nil {
			return err
		}
		shard, ok := r.shards[string(file)]
		if !ok {
			shard = string(file)
			if !plainName(shard) {
				return &FormatError{File: s.file, Tensor: string(name), Offset: int64(at), Err: ErrFormat,
					Problem: fmt.Sprintf("shard %s is not the plain name of a file in the folder", clip(shard))}
			}
			if err := s.charge(at, indexEntryBytes+2*textBytes(len(shard))); err != nil {
				return err
			}
			r.shards[shard] = shard
		}
		if err := s.charge(at, indexEntryBytes+textBytes(len(name))); err != nil {
			return err
		}
		r.weightMap[string(name)] = shard
		if more, err = s.next('{'); err != nil {
			return err
		}
	}
	return err
}

// maxName is the longest file name of common file systems, in bytes.
const maxName = 255

// plainName reports whether name is a file name without a folder on any system.
func plainName(name string) bool {
	return name != "" && len(name) <= maxName && name != "." && name != ".." && !strings.ContainsAny(name, "/\\:") && printable(name)
}

// openAssets reads the files that accompany the weights. For safetensors it takes the metadata from
// config.json.
func (f *File) openAssets(folder string) error {
	names := slices.Clone(assetNames)
	templates, err := os.ReadDir(filepath.Join(folder, templatesName))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("modelfile: %w", err)
	}
	for _, e := range templates {
		if filepath.Ext(e.Name()) == ".jinja" {
			names = append(names, templatesName+"/"+e.Name())
		}
	}
	for _, name := range names {
		data, ok, err := readAsset(folder, name)
		if err != nil {
			return err
		}
		if ok {
			f.assets[name] = data
		}
	}
	if config, ok := f.assets[configName]; ok && f.format == Safetensors {
		if f.meta, err = ParseJSON(filepath.Join(folder, configName), config); err != nil {
			return err
		}
		return f.derive(folder)
	}
	return nil
}

// readAsset reads a file of a folder. ok is false if the file does not exist.
func readAsset(folder, name string) (data []byte, ok bool, err error) {
	path := filepath.Join(folder, filepath.FromSlash(name))
	if _, err := os.Lstat(path); errors.Is(err, fs.ErrNotExist) {
		return nil, false, nil
	}
	file, info, err := openRegular(path)
	if err != nil {
		return nil, false, err
	}
	size := info.Size()
	defer file.Close() //nolint:errcheck // nothing was written
	if most := assetLimit(name); size > most {
		return nil, false, &FormatError{File: path, Offset: -1, Err: ErrFormat,
			Problem: fmt.Sprintf("%d bytes, more than the limit of %d for this file", size, most)}
	}
	data = make([]byte, size)
	if _, err := io.ReadFull(file, data); err != nil {
		return nil, false, fmt.Errorf("modelfile: %s: reading %d bytes: %w", path, size, err)
	}
	return data, true, nil
}
