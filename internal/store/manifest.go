package store

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"strings"

	"github.com/realizar/realizar/internal/names"
)

// Bounds on a registry's manifest.
const (
	MaxManifest  = 4 << 20 // bytes
	maxLayers    = 4096
	maxLayerSize = 1 << 46
)

// Media types of manifests, and of lists of manifests.
const (
	MediaManifest       = "application/vnd.oci.image.manifest.v1+json"
	MediaIndex          = "application/vnd.oci.image.index.v1+json"
	MediaDockerManifest = "application/vnd.docker.distribution.manifest.v2+json"
	MediaDockerIndex    = "application/vnd.docker.distribution.manifest.list.v2+json"
)

// Media types of models, as written by Docker's Model Runner, CNCF's ModelPack and Ollama.
const (
	MediaDockerGGUF   = "application/vnd.docker.ai.gguf.v3"
	mediaDocker       = "application/vnd.docker.ai."
	mediaPackManifest = "application/vnd.cncf.model.manifest.v1+json"
	MediaPackConfig   = "application/vnd.cncf.model.config.v1+json"
	MediaPackWeights  = "application/vnd.cncf.model.weight.v1.raw"
	mediaPackFile     = "application/vnd.cncf.model.weight.config.v1.raw"
	MediaPackDoc      = "application/vnd.cncf.model.doc.v1.raw"
	mediaPack         = "application/vnd.cncf.model."
	mediaPackBefore   = "application/vnd.cnai.model." // its former name
	mediaOllama       = "application/vnd.ollama.image."
)

// Annotations with the name of a layer's file, and of a model in the index.
const (
	AnnotationPackPath = "org.cncf.model.filepath"
	annotationBefore   = "org.cnai.model.filepath"
	annotationTitle    = "org.opencontainers.image.title"
	annotationName     = "org.opencontainers.image.ref.name"
)

// A Descriptor identifies bytes by their digest.
type Descriptor struct {
	MediaType   string            `json:"mediaType"`
	Digest      string            `json:"digest"`
	Size        int64             `json:"size"`
	Annotations map[string]string `json:"annotations,omitempty"`
}

// A Manifest is what a registry has under a name: the files of a model, or a list of manifests, of
// which the first counts.
type Manifest struct {
	SchemaVersion int               `json:"schemaVersion"`
	MediaType     string            `json:"mediaType,omitempty"`
	ArtifactType  string            `json:"artifactType,omitempty"`
	Config        Descriptor        `json:"config"`
	Layers        []Descriptor      `json:"layers"`
	Annotations   map[string]string `json:"annotations,omitempty"`

	Manifests []Descriptor `json:"manifests,omitempty"`
}

// ParseManifest parses a manifest. It checks sizes, digests and names, and refuses a manifest that
// cannot be a model's.
func ParseManifest(data []byte) (*Manifest, error) {
	if len(data) > MaxManifest {
		return nil, fmt.Errorf("a manifest of %d bytes, more than %d", len(data), MaxManifest)
	}
	// Each layer needs a comma, so this bounds the memory of parsing.
	if n := bytes.Count(data, []byte{','}); n > 16*maxLayers {
		return nil, fmt.Errorf("a manifest with %d values, more than those of %d layers", n, maxLayers)
	}
	m := new(Manifest)
	if err := json.Unmarshal(data, m); err != nil {
		return nil, fmt.Errorf("a manifest that is no JSON of one: %w", err)
	}
	if m.SchemaVersion != 2 {
		return nil, fmt.Errorf("a manifest of version %d; want 2", m.SchemaVersion)
	}
	if len(m.Layers) > maxLayers || len(m.Manifests) > maxLayers {
		return nil, fmt.Errorf("a manifest of more than %d layers", maxLayers)
	}
	all := m.Manifests
	if len(m.Manifests) == 0 {
		all = m.Layers
		if m.Config.Digest != "" {
			all = append([]Descriptor{m.Config}, all...)
		}
	}
	var sum int64
	for _, d := range all {
		if _, err := names.CheckDigest(d.Digest); err != nil {
			return nil, fmt.Errorf("a manifest: %w", err)
		}
		if d.Size < 0 || d.Size > maxLayerSize || sum+d.Size > maxLayerSize {
			return nil, fmt.Errorf("a manifest with a layer of %d bytes", d.Size)
		}
		sum += d.Size
	}
	return m, nil
}

// A layerKind says what to do with a layer.
type layerKind int

const (
	layerFile layerKind = iota
	layerTar
	layerGzip
	layerZstd
	layerIgnored
)

// A layer is a layer of a manifest with its file's name.
type layer struct {
	Descriptor
	kind layerKind
	name string // empty for an archive, which has names inside
}

// layers returns the layers with names that can be in one folder.
func (m *Manifest) layers() ([]layer, error) {
	all := make([]layer, 0, len(m.Layers))
	var list []string
	weights := map[string]int{} // unnamed files of weights, by extension
	for _, d := range m.Layers {
		l := layer{Descriptor: d, kind: kindOf(d.MediaType), name: nameOf(d)}
		if l.name == "" && l.kind == layerFile {
			switch ext := weightsOf(d.MediaType); {
			case ext != "":
				weights[ext]++
				l.name = ext
			default:
				l.name = besideName(d.MediaType)
			}
		}
		if l.name == "" && l.kind == layerFile {
			l.kind = layerIgnored
		}
		all = append(all, l)
	}
	nth := map[string]int{}
	for i := range all {
		l := &all[i]
		if n := weights[l.name]; n > 0 && l.kind == layerFile && strings.HasPrefix(l.name, ".") {
			nth[l.name]++
			if n == 1 {
				l.name = "model" + l.name
			} else {
				l.name = fmt.Sprintf("model-%05d-of-%05d%s", nth[l.name], n, l.name)
			}
		}
		if l.kind == layerFile {
			list = append(list, l.name)
		}
	}
	if len(list) == 0 && len(all) == 0 {
		return nil, errors.New("a manifest without layers")
	}
	return all, names.CheckFiles(list)
}

func kindOf(media string) layerKind {
	switch {
	case strings.HasSuffix(media, ".tar+gzip"):
		return layerGzip
	case strings.HasSuffix(media, ".tar+zstd"):
		return layerZstd
	case strings.HasSuffix(media, ".tar"):
		return layerTar
	}
	return layerFile
}

// nameOf returns the name that a layer's annotations give its file. For archives this is a folder's
// name or their own, which is not used.
func nameOf(d Descriptor) string {
	for _, key := range []string{AnnotationPackPath, annotationBefore, annotationTitle} {
		if name := d.Annotations[key]; name != "" {
			return strings.TrimPrefix(path.Clean(name), "./")
		}
	}
	return ""
}

// weightsOf returns the extension of a file of weights by its media type, or "" for other files.
func weightsOf(media string) string {
	switch media {
	case MediaDockerGGUF, mediaOllama + "model", mediaPack + "weight.v1.gguf":
		return ".gguf"
	case mediaDocker + "safetensors", mediaPack + "weight.v1.safetensors":
		return ".safetensors"
	}
	return ""
}

// besideName returns the name of a file other than weights by its media type.
func besideName(media string) string {
	switch media {
	case mediaDocker + "mmproj", mediaDocker + "gguf.v3.mmproj", mediaOllama + "projector":
		return "mmproj.gguf"
	case mediaDocker + "gguf.v3.lora", mediaOllama + "adapter":
		return "adapter.gguf"
	case mediaDocker + "chat.template.jinja":
		return "chat_template.jinja"
	case mediaDocker + "license":
		return "LICENSE"
	}
	return ""
}

// IsModel returns an error if a manifest is not a model's, for instance a container image's.
func (m *Manifest) IsModel() error {
	for _, d := range m.Layers {
		switch {
		case d.MediaType == mediaOllama+"tensor":
			return errors.New("the model is in single tensors, which realizar does not read; look for one as GGUF")
		case weightsOf(d.MediaType) != "", strings.HasPrefix(d.MediaType, mediaPack+"weight."), strings.HasPrefix(d.MediaType, mediaPackBefore+"weight."):
			return nil
		case strings.HasSuffix(nameOf(d), ".gguf"), strings.HasSuffix(nameOf(d), ".safetensors"):
			return nil
		}
	}
	return errors.New("there is no layer with weights; want an artifact of Docker's Model Runner, of ModelPack or of Ollama")
}
