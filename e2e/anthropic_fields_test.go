package e2e_test

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/packages/respjson"
)

// A fieldCheck compares a JSON answer with the client's types.
type fieldCheck struct {
	extra   []string // fields that the types do not have
	missing []string // required fields that are absent
}

// look checks a value of the client's types and all that it contains.
func (c *fieldCheck) look(path string, v reflect.Value) {
	switch v.Kind() {
	case reflect.Interface:
		if !v.IsNil() {
			c.look(path, v.Elem())
		}
	case reflect.Slice:
		for i := range v.Len() {
			c.look(path, v.Index(i))
		}
	case reflect.Struct:
		if any := v.MethodByName("AsAny"); any.IsValid() { // one of several types
			c.look(path, any.Call(nil)[0])
			return
		}
		came := v.FieldByName("JSON")
		if !came.IsValid() {
			return
		}
		if extra := came.FieldByName("ExtraFields"); extra.IsValid() {
			for _, name := range extra.MapKeys() {
				c.extra = append(c.extra, path+"."+name.String())
			}
		}
		for i := range v.NumField() {
			f := v.Type().Field(i)
			name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			if f.Name == "JSON" || name == "" {
				continue
			}
			field, ok := came.FieldByName(f.Name).Interface().(respjson.Field)
			switch {
			case ok && field.Raw() == "" && (f.Tag.Get("api") == "required" || f.Tag.Get("default") != ""):
				c.missing = append(c.missing, path+"."+name)
			case ok && field.Valid():
				c.look(path+"."+name, v.Field(i))
			}
		}
	}
}

// TestMessageFields checks that the client's types have all fields of the answers, and that
// all required fields are there, except those that have no meaning here.
func TestMessageFields(t *testing.T) {
	thinking := messaged("Tell me a story.", 60)
	thinking.Thinking = anthropic.ThinkingConfigParamUnion{OfEnabled: &anthropic.ThinkingConfigEnabledParam{BudgetTokens: 12}}
	calling := messaged("What is the weather like in Oslo?", 200)
	calling.Tools = []anthropic.ToolUnionParam{city}
	calling.ToolChoice = anthropic.ToolChoiceUnionParam{OfAny: &anthropic.ToolChoiceAnyParam{}}
	var c fieldCheck
	kinds := map[string]bool{}
	for model, p := range map[string]anthropic.MessageNewParams{thinker(t): thinking, demo: calling} {
		client := serveModel(t, model).anthropic()
		m, err := client.Messages.New(t.Context(), p)
		if err != nil {
			t.Fatal(err)
		}
		c.look("message", reflect.ValueOf(*m))
		stream := client.Messages.NewStreaming(t.Context(), p)
		for stream.Next() {
			e := stream.Current()
			kinds[e.Type], kinds[e.Delta.Type], kinds[e.ContentBlock.Type] = true, true, true
			c.look("event", reflect.ValueOf(e))
		}
		if err := stream.Err(); err != nil {
			t.Fatal(err)
		}
	}
	for _, kind := range strings.Fields("message_start content_block_start content_block_delta content_block_stop message_delta message_stop text thinking tool_use text_delta thinking_delta signature_delta input_json_delta") {
		if !kinds[kind] {
			t.Errorf("no %s came", kind)
		}
	}
	if len(c.extra) > 0 {
		t.Errorf("the client does not know %q", c.extra)
	}
	slices.Sort(c.missing)
	want := strings.Fields(`event.content_block.caller event.content_block.citations event.delta.container
		event.message.container event.message.diagnostics event.message.usage.cache_creation event.message.usage.inference_geo event.message.usage.server_tool_use event.message.usage.speed
		event.usage.server_tool_use message.container message.content.caller message.content.citations message.diagnostics
		message.usage.cache_creation message.usage.inference_geo message.usage.server_tool_use message.usage.speed`)
	if got := slices.Compact(c.missing); !slices.Equal(got, want) {
		t.Errorf("not there are %q\nwant %q", got, want)
	}
}
