package realizar

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/realizar/realizar/chat"
)

// efforts are the values of [ChatRequest.Effort].
var efforts = []string{"none", "minimal", "low", "medium", "high", "xhigh"}

// effortVariable is the variable that templates with several efforts read.
const effortVariable = "reasoning_effort"

// vars returns r.Vars with the variables that r.Effort sets. r.Vars take precedence.
func (r *ChatRequest) vars(t *chat.Template, f *shownForm) (map[string]json.RawMessage, error) {
	e := r.Effort
	if e == "" {
		return r.Vars, nil
	}
	if !slices.Contains(efforts, e) {
		return nil, fmt.Errorf("realizar: %w: effort %.50q; want %s", ErrRequest, e, strings.Join(efforts, ", "))
	}
	vars := map[string]json.RawMessage{}
	degrees := strings.Contains(t.Source(), effortVariable)
	if degrees && e != "none" {
		vars[effortVariable], _ = json.Marshal(e)
	}
	switches := f != nil && f.Reasoning.Variable != ""
	if switches {
		vars[f.Reasoning.Variable], _ = json.Marshal(e != "none")
	}
	thinks := f != nil && f.HasReasoning()
	switch {
	case e == "none" && thinks && !switches && !r.Continue:
		return nil, fmt.Errorf("realizar: %w: effort none, but the model's chat template cannot turn reasoning off; leave the effort out", ErrRequest)
	case e != "none" && !degrees && !thinks:
		return nil, fmt.Errorf("realizar: %w: effort %s, but the model's chat template has no reasoning; leave the effort out, or ask for none", ErrRequest, e)
	}
	maps.Copy(vars, r.Vars)
	return vars, nil
}
