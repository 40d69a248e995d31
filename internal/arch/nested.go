package arch

import (
	"slices"
	"strings"

	"github.com/realizar/realizar/modelfile"
	"github.com/realizar/realizar/tensor"
)

// A checkpoint of a model that also reads images or sound has the configuration of its language
// model in an object of its own, text_config, and the tensors of its other parts beside those of
// the language model; or its configuration is that of the language model, with objects for the other
// parts. Only the language model is used, without the heads that predict tokens beyond the next one.

// textMeta returns the metadata of f's language model.
func textMeta(f *modelfile.File) *modelfile.Meta {
	if text := f.Meta().Under("text_config"); f.Format() == modelfile.Safetensors && len(text.Keys()) > 0 {
		return text
	}
	return f.Meta()
}

// innerArchitecture returns the architecture of the language model in a checkpoint of another class,
// or nil.
func innerArchitecture(f *modelfile.File) *architecture {
	text := f.Meta().Under("text_config")
	if list, ok := text.Strings("architectures"); ok && len(list) > 0 {
		a, _, _ := lookup(list[0], func(a *architecture) string { return a.hub })
		return a
	}
	if kind, _ := text.String("model_type"); kind != "" {
		a, _, _ := lookup(kind, func(a *architecture) string { return a.kind })
		return a
	}
	return nil
}

// textBases are the prefixes that the tensors of a language model, and its head, may have beside other
// parts.
var textBases = []struct{ base, head string }{{"model.language_model.", ""}, {"language_model.model.", "language_model."}}

// towers are the prefixes of the tensors of other parts, after "model." if they have it.
var towers = []string{
	"vision_tower.", "vision_model.", "visual.", "audio_tower.", "audio_encoder.", "speech_embeddings.", "embed_vision.", "embed_audio.", "multi_modal_projector.", "mm_projector.",
}

// furtherHeads are the prefixes of the tensors that predict tokens beyond the next one, where checkpoints
// do not count them among the layers.
var furtherHeads = []string{"mtp.", "mtp_"}

// nested sets the prefix of the language model's tensors if the file has other parts too.
func (w *weights) nested() {
	parts := func(key string) bool {
		return strings.HasPrefix(key, "vision_config.") || strings.HasPrefix(key, "audio_config.")
	}
	if w.towers = textMeta(w.f) != w.f.Meta() || slices.ContainsFunc(w.f.Meta().Keys(), parts); !w.towers {
		return
	}
	has := func(prefix string) bool {
		return slices.ContainsFunc(w.f.Tensors(), func(t *tensor.Tensor) bool { return strings.HasPrefix(t.Name, prefix) })
	}
	for _, t := range textBases {
		if has(t.base) {
			w.base, w.headBase = t.base, t.head
			return
		}
	}
}

// elsewhere reports whether a tensor of a checkpoint belongs to another part than the language model,
// or to a head that predicts further tokens.
func (w *weights) elsewhere(name string) bool {
	own := strings.TrimPrefix(strings.TrimPrefix(name, w.base), "model.")
	begins := func(prefix string) bool { return strings.HasPrefix(own, prefix) }
	return w.hub && (slices.ContainsFunc(furtherHeads, begins) || w.towers && slices.ContainsFunc(towers, begins))
}
