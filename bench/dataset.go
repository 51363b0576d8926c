package main

import (
	"context"
	"crypto/rand"
	"fmt"
	"net/http"
	"time"

	"github.com/google/uuid"

	"quern.dev/quern/api"
)

// dataset is one of ada's, empty at first.
type dataset struct {
	*service

	path string
}

func (s *service) newDataset(ctx context.Context) (dataset, error) {
	return s.namedDataset(ctx, "bench-"+rand.Text())
}

func (s *service) namedDataset(ctx context.Context, name string) (dataset, error) {
	var made api.Dataset

	return dataset{s, "/data/ada/bench/" + name}, s.ask(ctx, "ada", http.MethodPost, "/ingest/new/bench/"+name, nil, &made)
}

// load binds an upload to the dataset and returns when its rows can be read. In the meantime it tells how far
// that is, again and again.
func (d dataset) load(ctx context.Context, files uuid.UUID, how api.NewIngestion, every time.Duration, tell func(api.Ingestion)) (api.Ingestion, error) {
	how.SessionID = files
	how.Accept = &[]api.DoubtCode{api.All} // the same file is loaded again and again

	var now api.Ingestion
	if err := d.ask(ctx, "ada", http.MethodPost, d.path+"/ingestions", how, &now); err != nil {
		return now, err
	}

	for now.Status == api.IngestionStatusQueued || now.Status == api.IngestionStatusRunning {
		time.Sleep(every)

		if err := d.ask(ctx, "ada", http.MethodGet, d.path+"/ingestions/"+now.ID.String(), nil, &now); err != nil {
			return now, err
		}

		if tell != nil {
			tell(now)
		}
	}

	if now.Status != api.IngestionStatusCompleted {
		return now, fmt.Errorf("the ingestion is %s: %+v %+v", now.Status, now.Error, now.SetAside)
	}

	return now, nil
}
