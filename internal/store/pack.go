package store

import (
	"encoding/json"
	"path"
	"strings"

	"github.com/realizar/realizar/internal/fetch"
	"github.com/realizar/realizar/internal/names"
)

// Wanted returns the files of a manifest to download: those of the model, its configuration, and
// others of at most small bytes.
func (m *Manifest) Wanted(small int64) ([]File, error) {
	layers, err := m.layers()
	if err != nil {
		return nil, err
	}
	var all []File
	add := func(d Descriptor, name string) {
		hex, _ := names.CheckDigest(d.Digest) // ParseManifest has checked it
		all = append(all, File{Name: name, Size: d.Size, Digest: fetch.SHA256(hex)})
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

// A packedConfig is the least configuration that ModelPack requires.
type packedConfig struct {
	Descriptor struct{} `json:"descriptor"`
	Config     struct {
		Format string `json:"format,omitempty"`
	} `json:"config"`
	ModelFS struct {
		Type    string   `json:"type"`
		DiffIDs []string `json:"diffIds"`
	} `json:"modelfs"`
}

// Pack makes a manifest and a configuration in ModelPack's form for the files of a model, which
// have names, sizes and SHA-256 digests. The same files give the same bytes.
func Pack(files []File) (manifest, config []byte, err error) {
	var c packedConfig
	c.ModelFS.Type = "layers"
	m := &Manifest{SchemaVersion: 2, MediaType: MediaManifest, ArtifactType: mediaPackManifest}
	for _, f := range files {
		switch path.Ext(f.Name) {
		case ".gguf", ".safetensors":
			c.Config.Format = strings.TrimPrefix(path.Ext(f.Name), ".")
		}
		d := "sha256:" + f.Digest.Hex()
		c.ModelFS.DiffIDs = append(c.ModelFS.DiffIDs, d)
		m.Layers = append(m.Layers, Descriptor{
			MediaType: packMedia(f.Name), Digest: d, Size: f.Size,
			Annotations: map[string]string{AnnotationPackPath: f.Name, annotationTitle: path.Base(f.Name)},
		})
	}
	if config, err = json.Marshal(c); err != nil {
		return nil, nil, err
	}
	h := fetch.SHA256("").New(0)
	h.Write(config)
	m.Config = Descriptor{MediaType: MediaPackConfig, Digest: string(fetch.SHA256("").Of(h)), Size: int64(len(config))}
	manifest, err = json.Marshal(m)
	return manifest, config, err
}

func packMedia(name string) string {
	switch path.Ext(name) {
	case ".gguf", ".safetensors":
		return MediaPackWeights
	case ".md":
		return MediaPackDoc
	}
	return mediaPackFile
}

// Blobs returns the manifest of a model of the own layout, and the paths of its files and its
// configuration by digest.
func (s *Store) Blobs(m *Model) (manifest []byte, paths map[string]string, err error) {
	if manifest, err = s.readManifest(m.Manifest); err != nil {
		return nil, nil, err
	}
	parsed, err := ParseManifest(manifest)
	if err != nil {
		return nil, nil, err
	}
	paths = map[string]string{}
	for _, d := range append(parsed.Layers, parsed.Config) {
		if hex, err := names.CheckDigest(d.Digest); err == nil {
			paths[d.Digest] = s.ownBlob(hex)
		}
	}
	return manifest, paths, nil
}
