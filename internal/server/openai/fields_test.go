package openai

import (
	"testing"

	"github.com/realizar/realizar/internal/server/fields/fieldstest"
)

// TestAPIFields checks that the tables of docs/api.md match the lists of fields.
func TestAPIFields(t *testing.T) {
	tables := map[string]fieldstest.Table{
		"chat":                       fieldstest.TableOf(chatFields),
		"message":                    fieldstest.TableOf(messageFields),
		"part":                       fieldstest.TableOf(partFields),
		"tool call":                  fieldstest.TableOf(callFields),
		"called function":            fieldstest.TableOf(calledFields),
		"tool":                       fieldstest.TableOf(toolFields),
		"function":                   fieldstest.TableOf(functionFields),
		"kv transfer":                fieldstest.TableOf(transferFields),
		"stream options":             fieldstest.TableOf(streamOptionsFields),
		"structured outputs":         fieldstest.TableOf(structuredFields),
		"text format":                fieldstest.TableOf(formatFields["text"]),
		"json object format":         fieldstest.TableOf(formatFields["json_object"]),
		"json schema format":         fieldstest.TableOf(formatFields["json_schema"]),
		"json schema":                fieldstest.TableOf(jsonSchemaFields),
		"named choice":               fieldstest.TableOf(namedChoiceFields),
		"called name":                fieldstest.TableOf(calledNameFields),
		"allowed tools":              fieldstest.TableOf(allowedFields),
		"completions":                fieldstest.TableOf(completionsFields),
		"responses":                  fieldstest.TableOf(responsesFields),
		"responses message":          fieldstest.TableOf(inputFields["message"]),
		"responses part":             fieldstest.TableOf(inputPartFields),
		"responses call":             fieldstest.TableOf(inputFields["function_call"]),
		"responses reasoning item":   fieldstest.TableOf(inputFields["reasoning"]),
		"responses json schema":      fieldstest.TableOf(responseFormatFields["json_schema"]),
		"responses reference":        fieldstest.TableOf(inputFields["item_reference"]),
		"responses output of a call": fieldstest.TableOf(inputFields["function_call_output"]),
		"responses tool":             fieldstest.TableOf(responseToolFields),
		"responses text":             fieldstest.TableOf(responseTextFields),
		"responses reasoning":        fieldstest.TableOf(reasoningFields),
		"responses stream options":   fieldstest.TableOf(responseStreamFields),
		"embeddings":                 fieldstest.TableOf(embeddingsFields),
	}
	lists := len(tables) -
		len(inputFields) + 1 - // one list by type
		3 + 1 - // formatFields
		1 + 1 + // responseFormatFields
		4 // settingsFields, formFields, ContinuationFields and allowedChoiceFields are parts of other lists
	fieldstest.Check(t, "../../../docs/api.md", "openai", lists, tables)
}
