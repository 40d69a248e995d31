// Package turn describes how a model writes its turn of a conversation: how reasoning, text and
// tool calls are marked.
//
// The description is a [Form]. [Find] derives it from the model's chat template: it renders
// messages that differ in one respect and compares the texts. For a few families whose templates do
// not show how calls are written the package has built-in forms. A Form makes the [Parser] of a
// stream and the grammar that constrains calls.
package turn
