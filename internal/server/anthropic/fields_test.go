package anthropic

import (
	"testing"

	"github.com/realizar/realizar/internal/server/fields/fieldstest"
)

// TestAPIFields checks that the tables of docs/anthropic.md match the lists of fields.
func TestAPIFields(t *testing.T) {
	tables := map[string]fieldstest.Table{
		"messages":                fieldstest.TableOf(messagesFields),
		"count tokens":            fieldstest.TableOf(askFields),
		"message":                 fieldstest.TableOf(messageFields),
		"text block":              fieldstest.TableOf(blockFields["text"]),
		"thinking block":          fieldstest.TableOf(blockFields["thinking"]),
		"redacted thinking block": fieldstest.TableOf(blockFields["redacted_thinking"]),
		"tool use block":          fieldstest.TableOf(blockFields["tool_use"]),
		"tool result block":       fieldstest.TableOf(blockFields["tool_result"]),
		"tool":                    fieldstest.TableOf(toolFields),
		"tool choice":             fieldstest.TableOf(choiceFields),
		"thinking":                fieldstest.TableOf(thinkingFields),
		"output config":           fieldstest.TableOf(outputFields),
		"format":                  fieldstest.TableOf(formatFields),
		"context management":      fieldstest.TableOf(managementFields),
	}
	lists := len(tables) - len(blockFields) + 1 // one list by type
	fieldstest.Check(t, "../../../docs/anthropic.md", "anthropic", lists, tables)
}
