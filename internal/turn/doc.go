// Package turn knows how a model writes its turn of a conversation: where its
// reasoning, its text and its calls of tools stand.
//
// All of that is in one description, a [Form], which [Find] reads off the
// model's own chat template: it renders messages that differ in one thing and
// looks at what differs in the text. A few families whose templates do not show
// how calls are written have descriptions of their own. From the Form come the
// [Parser] of a stream and the grammar that enforces calls.
package turn
