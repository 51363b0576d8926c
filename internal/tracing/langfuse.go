package tracing

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strconv"
)

// langfuse stores a rating as a score of the trace. Langfuse replaces a score with the same id only on the same day.
// Therefore each revision has its own id, and the other revisions are deleted after it is accepted. The trace need not
// exist yet.
type langfuse struct{ *Tracing }

type score struct {
	ID          string            `json:"id"`
	TraceID     string            `json:"traceId"`
	Name        string            `json:"name"`
	Value       int               `json:"value"`
	DataType    string            `json:"dataType"`
	Comment     *string           `json:"comment"` // null removes an earlier comment; an absent member would keep it
	Metadata    map[string]string `json:"metadata"`
	Environment string            `json:"environment"`
}

func (l langfuse) put(ctx context.Context, rating Rating) error {
	one := score{
		ID: scoreID(rating.Run, rating.Revision), TraceID: hexOf(rating.Run.TraceID), Name: scoreName, DataType: "BOOLEAN",
		Metadata: map[string]string{"run_id": rating.Run.ID}, Environment: l.config.Environment,
	}
	if *rating.Up {
		one.Value = 1
	}

	if rating.Comment != "" {
		one.Comment = &rating.Comment
	}

	standing := false

	if rating.Again { // a repeat on another day would create a duplicate
		ids, err := l.standing(ctx, rating.Run)
		if err != nil {
			return err
		}

		standing = slices.Contains(ids, one.ID)
	}

	if !standing {
		var made struct{ ID string }

		err := l.call(ctx, http.MethodPost, "/api/public/scores", one, &made)
		if err == nil && made.ID != one.ID {
			err = errors.New("the response does not name the created score")
		}

		if err != nil {
			return unknown(err)
		}
	}

	return l.remove(ctx, rating)
}

// standing returns the ids of the ratings that the trace has in the store.
func (l langfuse) standing(ctx context.Context, run Run) (ids []string, err error) {
	var found struct{ Data []struct{ ID string } }

	which := url.Values{"traceId": {hexOf(run.TraceID)}, "name": {scoreName}, "fields": {"details,subject"}}
	err = l.call(ctx, http.MethodGet, "/api/public/v3/scores?"+which.Encode(), nil, &found)

	for _, one := range found.Data {
		ids = append(ids, one.ID)
	}

	return ids, unknown(err)
}

// remove deletes the other revisions of the rating.
func (l langfuse) remove(ctx context.Context, rating Rating) error {
	for _, revision := range rating.Others {
		err := l.call(ctx, http.MethodDelete, "/api/public/scores/"+url.PathEscape(scoreID(rating.Run, revision)), nil, nil)
		if err != nil && !errors.Is(err, errAbsent) {
			return err
		}
	}

	return nil
}

// unknown replaces errAbsent by errRefused, for calls that cannot return "not found" unless another service answers at the
// address.
func unknown(err error) error {
	if errors.Is(err, errAbsent) {
		return errRefused
	}

	return err
}

func scoreID(run Run, revision int64) string { return run.ID + "-" + strconv.FormatInt(revision, 10) }
