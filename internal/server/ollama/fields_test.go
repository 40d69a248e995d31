package ollama

import (
	"testing"

	"github.com/realizar/realizar/internal/server/fields/fieldstest"
)

// TestAPIFields: the tables of docs/ollama.md are those of the code.
func TestAPIFields(t *testing.T) {
	tables := map[string]fieldstest.Table{
		"chat":            fieldstest.TableOf(chatFields),
		"message":         fieldstest.TableOf(messageFields),
		"tool call":       fieldstest.TableOf(callFields),
		"called function": fieldstest.TableOf(calledFields),
		"tool":            fieldstest.TableOf(toolFields),
		"function":        fieldstest.TableOf(functionFields),
		"options":         fieldstest.TableOf(optionsFields),
		"generate":        fieldstest.TableOf(generateFields),
		"embed":           fieldstest.TableOf(embedFields),
		"embeddings":      fieldstest.TableOf(embeddingsFields),
		"show":            fieldstest.TableOf(showFields),
		"pull":            fieldstest.TableOf(pullFields),
		"push":            fieldstest.TableOf(pushFields),
		"create":          fieldstest.TableOf(createFields),
		"copy":            fieldstest.TableOf(copyFields),
		"delete":          fieldstest.TableOf(deleteFields),
	}
	fieldstest.Check(t, "../../../docs/ollama.md", "ollama", len(tables)+1, tables) // settingsFields are part of others
}
