package mcp

import (
	"time"

	"github.com/google/uuid"

	"quern.dev/quern/internal/verified"
)

const pageVerified = 50

type listedVerified struct {
	Questions  []verifiedQuestion `json:"questions"`
	NextCursor string             `json:"nextCursor,omitempty"`
	Hint       string             `json:"hint,omitempty"`
}

type verifiedQuestion struct {
	ID             uuid.UUID `json:"id"`
	Question       string    `json:"question"`
	Interpretation string    `json:"interpretation,omitempty"`
	SQL            string    `json:"sql"`
	Author         string    `json:"author"`
	VerifiedAt     time.Time `json:"verifiedAt"`
}

// listVerified lists the verified questions of a namespace that answer.
func (s *Server) listVerified(call *invocation) (any, error) {
	in := call.args.namespace()

	var after uuid.UUID
	if err := call.position(&after); err != nil {
		return nil, err
	}

	found, next, err := s.Verified.List(call, call.who, in, verified.Active, after, pageVerified)
	if err != nil {
		return nil, absent(err, "There is no such namespace that you can see. Call list_datasets.")
	}

	page, left := listedVerified{Questions: []verifiedQuestion{}}, newBudget()

	for _, q := range found {
		one := verifiedQuestion{q.ID, clip(q.Question, maxText), clip(q.Interpretation, maxText), clip(q.Query, maxOption), q.Author, q.VerifiedAt}
		if !left.take(one) {
			break
		}

		page.Questions = append(page.Questions, one)
	}

	if shown := len(page.Questions); shown < len(found) && shown > 0 {
		next = page.Questions[shown-1].ID
	}

	if next != uuid.Nil {
		page.NextCursor, err = call.cursor(next)
	}

	if len(found) == 0 {
		page.Hint = "Nobody has verified questions here that you may see."
	}

	return page, err
}
