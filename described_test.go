package realizar_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/realizar/realizar"
	"github.com/realizar/realizar/internal/modeltest"
)

// Model.Description equals the result of Describe.
func TestDescription(t *testing.T) {
	for _, path := range []string{modeltest.Llama(t), modeltest.Hub(t)} {
		want, err := realizar.Describe(path)
		if err != nil {
			t.Fatal(err)
		}
		m, err := realizar.Open(t.Context(), path, realizar.Options{Device: "cpu"})
		if err != nil {
			t.Fatal(err)
		}
		defer m.Close() //nolint:errcheck // nothing was written
		not := cmpopts.IgnoreFields(realizar.Description{}, "Path", "Tokenizer", "TokenizerProblem", "ChatTemplate", "ToolTemplate", "TemplateProblem", "Plan")
		windows := cmpopts.IgnoreFields(realizar.Dimensions{}, "Windows")
		if diff := cmp.Diff(want, m.Description(), not, windows, cmpopts.IgnoreUnexported(realizar.Description{})); diff != "" {
			t.Errorf("%s (-files +model)\n%s", path, diff)
		}
	}
}
