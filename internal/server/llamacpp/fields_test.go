package llamacpp

import (
	"testing"

	"github.com/realizar/realizar/internal/server/fields/fieldstest"
)

// TestAPIFields: the tables of docs/llamacpp.md are those of the code.
func TestAPIFields(t *testing.T) {
	tables := map[string]fieldstest.Table{
		"completion": fieldstest.TableOf(completionFields),
		"infill":     fieldstest.TableOf(infillFields[:len(infillFields)-len(settingsFields)]),
		"file":       fieldstest.TableOf(fileFields),
		"model":      fieldstest.TableOf(modelFields),
	}
	fieldstest.Check(t, "../../../docs/llamacpp.md", "llamacpp", len(tables)+1, tables) // settingsFields are part of others
}
