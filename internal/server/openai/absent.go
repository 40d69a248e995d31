package openai

import "strings"

// Parts of OpenAI's API that a model of text has no part in, or that would have to be kept.
var absent = []struct{ path, why string }{
	{"/v1/audio", "the model reads and writes text, and no sound"},
	{"/v1/realtime", "the model reads and writes text, and no sound"},
	{"/v1/images", "the model writes text, and no images"},
	{"/v1/videos", "the model writes text, and no videos"},
	{"/v1/files", "files are not kept; send texts with the request"},
	{"/v1/uploads", "files are not kept; send texts with the request"},
	{"/v1/vector_stores", "files are not kept; send texts with the request"},
	{"/v1/containers", "files are not kept; send texts with the request"},
	{"/v1/batches", "nothing is kept for later; send the requests, as many at one time as the server lets in"},
	{"/v1/fine_tuning", "models are served as they are"},
	{"/v1/moderations", "the model writes text, and does not judge it by OpenAI's categories"},
	{"/v1/assistants", "conversations are not kept; send the messages to /v1/chat/completions"},
	{"/v1/threads", "conversations are not kept; send the messages to /v1/chat/completions"},
	{"/v1/conversations", "conversations are not kept; send the one so far as the input of /v1/responses"},
	{"/v1/responses", "responses are not kept; send the conversation so far as the input of /v1/responses"},
	{"/v1/chat/completions", "answers are not kept; they come from POST /v1/chat/completions alone"},
}

// Served are the endpoints that the parts above are not.
const served = "; served are /v1/chat/completions, /v1/completions, /v1/responses, /v1/embeddings and /v1/models"

// Explain is why there is nothing at a path of OpenAI's API.
func (Dialect) Explain(path string) string {
	if !strings.HasPrefix(path, "/v1/") {
		path = "/v1" + path // as clients with another base URL have it
		if strings.Contains(served, " "+path+",") || strings.HasSuffix(served, " "+path) {
			return "" // it is there, with /v1
		}
	}
	for _, a := range absent {
		if path == a.path || strings.HasPrefix(path, a.path+"/") {
			return a.why + served
		}
	}
	return ""
}
