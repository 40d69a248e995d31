package llamacpp

import (
	"github.com/realizar/realizar/internal/server"
)

// A propsAnswer is what the server is.
type propsAnswer struct {
	Defaults   defaultSettings `json:"default_generation_settings"`
	Slots      int             `json:"total_slots"`
	Alias      string          `json:"model_alias"`
	Path       string          `json:"model_path"`
	Template   string          `json:"chat_template"`
	BOS        string          `json:"bos_token"`
	EOS        string          `json:"eos_token"`
	Modalities map[string]bool `json:"modalities"`
	Build      string          `json:"build_info"`
	Sleeping   bool            `json:"is_sleeping"`
}

type defaultSettings struct {
	Context int            `json:"n_ctx"`
	Params  map[string]any `json:"params"`
}

// props is GET /props. Where the model lies is nothing that clients need to know.
func props(x *server.Exchange) error {
	if err := x.Hold(x.URL.Query().Get("model")); err != nil {
		return err
	}
	m, name := x.Model(), x.Name()
	s := defaults(m.Model)
	a := propsAnswer{
		Defaults: defaultSettings{m.Context(), map[string]any{
			"temperature": s.Temperature, "top_k": s.TopK, "top_p": s.TopP, "min_p": s.MinP, "n_predict": -1,
		}},
		Slots: m.Parallel(), Alias: name, Path: name, Modalities: map[string]bool{"vision": false, "audio": false}, Build: "realizar",
	}
	if t, err := m.ChatTemplate(); err == nil {
		a.Template = t.Source()
	}
	if tok, err := m.Tokenizer(); err == nil {
		if id, ok := tok.BOS(); ok {
			a.BOS, _ = tok.Token(id)
		}
		if id, ok := tok.EOS(); ok {
			a.EOS, _ = tok.Token(id)
		}
	}
	return x.JSON(&a)
}

// A slotEntry is a place for an answer. Nothing is said of whose it is.
type slotEntry struct {
	ID      int  `json:"id"`
	Context int  `json:"n_ctx"`
	Busy    bool `json:"is_processing"`
}

// slots is GET /slots. Answers have no place of their own here, so that those under way take
// the first ones.
func slots(x *server.Exchange) error {
	if err := x.Hold(x.URL.Query().Get("model")); err != nil {
		return err
	}
	m := x.Model()
	running := m.Metrics().Running
	list := make([]slotEntry, m.Parallel())
	for i := range list {
		list[i] = slotEntry{ID: i, Context: m.Context(), Busy: i < running}
	}
	return x.JSON(list)
}
