package source

import (
	"context"

	"github.com/google/uuid"

	"quern.dev/quern/internal/ingest"
	"quern.dev/quern/internal/postgres"
)

// OpenFile is a file of a source about which nobody has decided yet, or that is left out because it could not be loaded.
type OpenFile struct {
	Path      string        // empty for the rows of a database
	Status    ingest.Status // Waiting or Failed
	Ingestion uuid.UUID     // uuid.Nil if there is none
}

// maxOpen is how many open files of a source are shown.
const maxOpen = 20

// withOpen adds the open files to a source. Somebody may have decided about a file since the last run, so the ingestions are asked.
func (s *Sources) withOpen(ctx context.Context, of Source) (Source, error) {
	var candidates []file

	if of.load != nil && of.load.Ingestion != uuid.Nil {
		candidates = append(candidates, file{owner: of.load.Owner, dataset: of.load.Dataset, ingestion: of.load.Ingestion})
	}

	err := s.DB.Do(ctx, func(q postgres.Querier) error {
		files, err := selectOpen(ctx, q, of)
		candidates = append(candidates, files...)

		return err
	})
	if err != nil {
		return of, err
	}

	for _, f := range candidates {
		open := OpenFile{Path: f.path, Status: ingest.Failed, Ingestion: f.ingestion}

		if f.ingestion != uuid.Nil {
			found, err := s.Ingest.Find(ctx, f.owner, f.dataset, f.ingestion)
			if err != nil {
				return of, err
			}

			if found == nil || found.IsSuperseded() || found.Status != ingest.Waiting && found.Status != ingest.Failed {
				continue
			}

			open.Status = found.Status
		}

		of.Open = append(of.Open, open)
	}

	return of, nil
}
