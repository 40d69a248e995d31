package vllm

import (
	"testing"

	"github.com/realizar/realizar/internal/server/fields/fieldstest"
)

// TestAPIFields checks that the tables of docs/api.md match the lists of fields.
func TestAPIFields(t *testing.T) {
	tables := map[string]fieldstest.Table{
		"rerank":     fieldstest.TableOf(rerankFields),
		"document":   fieldstest.TableOf(rankedTextFields),
		"tokenize":   fieldstest.TableOf(tokenizeFields),
		"detokenize": fieldstest.TableOf(detokenizeFields),
	}
	fieldstest.Check(t, "../../../docs/api.md", "vllm", len(tables), tables)
}
