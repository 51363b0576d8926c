package rig

import (
	"context"
	"crypto/rand"
	"fmt"
	"net/http"
	"time"

	"github.com/google/uuid"

	"quern.dev/quern/api"
)

// IngestPoll is how often the bench asks for the progress of an ingestion.
const IngestPoll = 100 * time.Millisecond

// Dataset is a dataset of ada, empty at first.
type Dataset struct {
	*Service

	Path string
}

func (s *Service) NewDataset(ctx context.Context) (Dataset, error) {
	return s.NamedDataset(ctx, "bench-"+rand.Text())
}

func (s *Service) NamedDataset(ctx context.Context, name string) (Dataset, error) {
	var made api.Dataset

	return Dataset{s, "/data/ada/bench/" + name}, s.Ask(ctx, "ada", http.MethodPost, "/ingest/new/bench/"+name, nil, &made)
}

// Load loads an upload into the dataset and returns when its rows can be read. Until then it calls tell repeatedly with
// the progress.
func (d Dataset) Load(ctx context.Context, files uuid.UUID, how api.NewIngestion, every time.Duration, tell func(api.Ingestion)) (api.Ingestion, error) {
	how.SessionID = files
	how.Accept = &[]api.DoubtCode{api.All} // the same file is loaded again and again

	var now api.Ingestion
	if err := d.Ask(ctx, "ada", http.MethodPost, d.Path+"/ingestions", how, &now); err != nil {
		return now, err
	}

	for now.Status == api.IngestionStatusQueued || now.Status == api.IngestionStatusRunning {
		time.Sleep(every)

		if err := d.Ask(ctx, "ada", http.MethodGet, d.Path+"/ingestions/"+now.ID.String(), nil, &now); err != nil {
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
