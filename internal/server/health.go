package server

// health says that the process is there.
func (s *Server) health(x *Exchange) error {
	x.WriteJSON([]byte(`{"status":"ok"}`))
	return nil
}

// ready says whether a request would be let in, and how many answers are under way or
// wait, of those that may.
func (s *Server) ready(x *Exchange) error {
	if err := s.admission.enter(0); err != nil {
		return err
	}
	return x.JSON(struct {
		Status  string `json:"status"`
		Answers int    `json:"answers"`
		Limit   int    `json:"limit"`
	}{"ready", s.admission.count(), s.admission.limit})
}
