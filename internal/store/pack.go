package store

import (
	"encoding/json"
	"path"
	"strings"

	"github.com/realizar/realizar/internal/fetch"
	"github.com/realizar/realizar/internal/names"
)

// Files are the files of a manifest that are to be there: those of the model, its
// configuration, and others that have no more than small bytes.
func (m *Manifest) Files(small int64) ([]File, error) {
	layers, err := m.layers()
	if err != nil {
		return nil, err
	}
	var all []File
	add := func(d Descriptor, name string) {
		hex, _ := names.CheckDigest(d.Digest) // ParseManifest has seen to it
		all = append(all, File{Name: name, Size: d.Size, Digest: fetch.SHA256(hex), Media: d.MediaType})
	}
	if m.Config.Digest != "" {
		add(m.Config, "config")
	}
	for _, l := range layers {
		if l.kind != layerIgnored || l.Size <= small {
			add(l.Descriptor, or(l.name, path.Base(l.MediaType)))
		}
	}
	return all, nil
}

// packConfig is the least configuration of a model in ModelPack's form.
const packConfig = `{"descriptor":{},"modelfs":{"type":"layers","diffIds":[]},"config":{}}`

// Pack makes a manifest in ModelPack's form for files of a model, and puts its
// configuration there. The files have names, sizes and digests.
func (p *OwnPull) Pack(files []File) ([]byte, error) {
	config, err := p.WriteBlob([]byte(packConfig))
	if err != nil {
		return nil, err
	}
	m := PackManifest(files)
	m.Config = Descriptor{MediaType: MediaPackConfig, Digest: config, Size: int64(len(packConfig))}
	return json.Marshal(m)
}

// PackManifest is the manifest without a configuration.
func PackManifest(files []File) *Manifest {
	m := &Manifest{SchemaVersion: 2, MediaType: MediaManifest, ArtifactType: MediaPackManifest}
	for _, f := range files {
		name := f.Name
		if len(files) == 1 && !strings.HasSuffix(name, ".gguf") {
			name = "model.gguf"
		}
		m.Layers = append(m.Layers, Descriptor{
			MediaType: packMedia(name), Digest: "sha256:" + f.Digest.Hex(), Size: f.Size,
			Annotations: map[string]string{AnnotationPackPath: name, AnnotationTitle: path.Base(name)},
		})
	}
	return m
}

func packMedia(name string) string {
	switch path.Ext(name) {
	case ".gguf", ".safetensors":
		return MediaPackWeights
	case ".md":
		return MediaPackDoc
	}
	return MediaPackFile
}
