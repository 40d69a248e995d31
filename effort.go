package realizar

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/realizar/realizar/chat"
)

// efforts are what [ChatRequest.Effort] may be.
var efforts = []string{"none", "minimal", "low", "medium", "high", "xhigh"}

// effortVariable is what templates that know degrees of thought call theirs.
const effortVariable = "reasoning_effort"

// vars are the variables of r's template, with those that its effort sets.
func (r *ChatRequest) vars(t *chat.Template, f *shownForm) (map[string]json.RawMessage, error) {
	e := r.Effort
	if e == "" {
		return r.Vars, nil
	}
	if !slices.Contains(efforts, e) {
		return nil, fmt.Errorf("realizar: %w: an effort of %.50q; want %s", ErrRequest, e, strings.Join(efforts, ", "))
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
		return nil, fmt.Errorf("realizar: %w: an effort of none: the model's chat template cannot switch thought off", ErrRequest)
	case e != "none" && !degrees && !thinks:
		return nil, fmt.Errorf("realizar: %w: an effort of %s: the model's chat template knows no thought; leave it out, or ask for none", ErrRequest, e)
	}
	maps.Copy(vars, r.Vars)
	return vars, nil
}
