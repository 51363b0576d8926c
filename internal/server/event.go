package server

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"quern.dev/quern/internal/event"
	"quern.dev/quern/internal/fault"
	"quern.dev/quern/internal/feed"
)

// streamEvents handles GET /events.
func (s *Server) streamEvents(w http.ResponseWriter, r *http.Request) error {
	after, _ := strconv.ParseInt(r.Header.Get("Last-Event-ID"), 10, 64) // the guard has checked it; 0 if absent

	filter, err := eventFilter(r)
	if err != nil {
		return err
	}

	if !wantsStream(r.Header.Values("Accept")) {
		limit, err := strconv.Atoi(r.URL.Query().Get("limit")) // the guard has checked it
		if err != nil {
			limit = defaultPage
		}

		return s.readEvents(w, r, filter, after, limit)
	}

	return s.reserved(r, func() error { return s.followEvents(w, r, filter, after) })
}

// followEvents writes events until the client disconnects or this process stops. The stream has no end of its own, so a stop would wait for
// it in vain. The client continues at another replica.
func (s *Server) followEvents(w http.ResponseWriter, r *http.Request, filter feed.Filter, after int64) error {
	events, err := s.config.Feed.Open(r.Context(), callOf(r.Context()).who, filter, after)
	if err != nil {
		return err
	}
	defer events.Close()

	ctx, end := context.WithCancel(r.Context())
	defer end()
	defer s.config.WhenStopping(end)()

	return writeStream(ctx, w, events.Next, sendBatch)
}

// eventPage is a page of events in its form in the API.
type eventPage struct {
	Data        []event.Notice `json:"data"`
	LastEventID string         `json:"lastEventId"`
}

// readEvents writes the events that there are now.
func (s *Server) readEvents(w http.ResponseWriter, r *http.Request, filter feed.Filter, after int64, limit int) error {
	batch, err := s.config.Feed.Read(r.Context(), callOf(r.Context()).who, filter, after, limit)
	if err != nil {
		return err
	}

	page := eventPage{Data: make([]event.Notice, len(batch.Events)), LastEventID: strconv.FormatInt(batch.Position, 10)}
	for i, e := range batch.Events {
		page.Data[i] = e.Notice()
	}

	writeJSON(w, http.StatusOK, page)

	return nil
}

// sendBatch writes events, or only the position of the stream: an ID without data is no event for a client, but the next Last-Event-ID.
func sendBatch(w http.ResponseWriter, batch feed.Batch) (ended bool, err error) {
	var text bytes.Buffer

	for _, e := range batch.Events {
		body, err := json.Marshal(e.Notice())
		if err != nil {
			return true, err
		}

		fmt.Fprintf(&text, "id: %d\nevent: %s\ndata: %s\n\n", e.Seq, e.Type, body)
	}

	if len(batch.Events) == 0 || batch.Events[len(batch.Events)-1].Seq < batch.Position {
		fmt.Fprintf(&text, "id: %d\n\n", batch.Position)
	}

	return false, flush(w, text.Bytes())
}

// eventFilter returns the filter in the parameters of a request.
func eventFilter(r *http.Request) (filter feed.Filter, err error) {
	query := r.URL.Query()

	if query.Has("types") {
		if filter.Types, err = eventTypes("types", strings.Split(query.Get("types"), ",")); err != nil {
			return filter, err
		}
	}

	given := func(name string) *string {
		if !query.Has(name) {
			return nil
		}

		return new(query.Get(name))
	}

	if filter.At, err = namespaceFilter(given("username"), given("namespace")); err != nil {
		return filter, err
	}

	if name := given("datasetName"); name != nil {
		if filter.At == nil {
			return filter, fault.Invalid("namespace", "is required with datasetName, and username too")
		}

		filter.At.Dataset = *name
	}

	return filter, nil
}

// eventTypes returns the types of events that a request names.
func eventTypes(field string, names []string) (types []event.Type, err error) {
	for _, name := range names {
		if !slices.Contains(event.Types(), event.Type(name)) {
			var known []string
			for _, one := range event.Types() {
				known = append(known, string(one))
			}

			return nil, fault.Invalid(field, "has an entry that is not a type of events; the types are "+strings.Join(known, ", "))
		}

		types = append(types, event.Type(name))
	}

	return types, nil
}
