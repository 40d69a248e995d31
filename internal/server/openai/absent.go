package openai

import "strings"

// absent lists the parts of OpenAI's API that are not served: those for sound, images and video,
// and those that would keep data between requests.
var absent = []struct{ path, why string }{
	{"/v1/audio", "the model reads and writes text, and no sound"},
	{"/v1/realtime", "the model reads and writes text, and no sound"},
	{"/v1/images", "the model writes text, and no images"},
	{"/v1/videos", "the model writes text, and no videos"},
	{"/v1/files", "files are not kept; send texts with the request"},
	{"/v1/uploads", "files are not kept; send texts with the request"},
	{"/v1/vector_stores", "files are not kept; send texts with the request"},
	{"/v1/containers", "files are not kept; send texts with the request"},
	{"/v1/batches", "the server keeps no requests for later; send them now, in parallel"},
	{"/v1/fine_tuning", "models are served as they are"},
	{"/v1/moderations", "the model writes text, and does not judge it by OpenAI's categories"},
	{"/v1/assistants", "conversations are not kept; send the messages to /v1/chat/completions"},
	{"/v1/threads", "conversations are not kept; send the messages to /v1/chat/completions"},
	{"/v1/conversations", "conversations are not kept; send the one so far as the input of /v1/responses"},
	{"/v1/responses", "responses are not kept; send the conversation so far as the input of /v1/responses"},
	{"/v1/chat/completions", "answers are not kept; they come from POST /v1/chat/completions alone"},
}

// served names the endpoints that are served; Explain appends it to its answer.
const served = "; served are /v1/chat/completions, /v1/completions, /v1/responses, /v1/embeddings and /v1/models"

// Explain says why a path of OpenAI's API is not served, or "" if it is served or not OpenAI's.
func (Dialect) Explain(path string) string {
	if !strings.HasPrefix(path, "/v1/") {
		path = "/v1" + path // for clients whose base URL lacks /v1
		if strings.Contains(served, " "+path+",") || strings.HasSuffix(served, " "+path) {
			return "" // served at the path with /v1
		}
	}
	for _, a := range absent {
		if path == a.path || strings.HasPrefix(path, a.path+"/") {
			return a.why + served
		}
	}
	return ""
}
