package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"golang.org/x/sync/errgroup"

	"quern.dev/quern/api"
)

const (
	loadsAtOnce = 2
	loadPoll    = 100 * time.Millisecond
)

// loadAll loads every table through uploads and ingestions, as a user would.
func (s *service) loadAll(ctx context.Context, set string, tables []table, split string) error {
	begin := time.Now()
	loads, loading := errgroup.WithContext(ctx)
	loads.SetLimit(loadsAtOnce)

	var done atomic.Int64

	for i, t := range tables {
		loads.Go(func() error {
			if err := s.load(loading, set, t); err != nil {
				if split == heldOut {
					t.file = fmt.Sprintf("table %d", i+1)
				}

				return fmt.Errorf("loading %s: %w", t.file, discreet(err, split))
			}

			if n := done.Add(1); n%25 == 0 || n == int64(len(tables)) {
				fmt.Fprintf(os.Stderr, "eval: %d of %d tables loaded, %v\n", n, len(tables), time.Since(begin).Round(time.Second))
			}

			return nil
		})
	}

	return loads.Wait()
}

// load replaces the rows of a dataset. It creates the dataset if it does not exist.
func (s *service) load(ctx context.Context, set string, t table) error {
	file := filepath.Join(set, filepath.FromSlash(t.file))

	content, err := os.ReadFile(file)
	if err != nil {
		return err
	}

	definition, err := readDefinition(file)
	if err != nil {
		return err
	}

	made, err := s.api.CreateDatasetWithResponse(ctx, t.namespace, t.dataset, nil, api.InferDefinitionChange{SchemaDefinition: definition})
	if err != nil {
		return err
	}

	if made.JSON201 == nil && made.StatusCode() != http.StatusConflict {
		return refusal("creating the dataset", made.HTTPResponse, made.Body)
	}

	session, err := s.upload(ctx, upload{filepath.Base(file), content})
	if err != nil {
		return err
	}

	_, err = s.ingest(ctx, t, api.NewIngestion{SessionID: session, Mode: new(api.NewIngestionModeReplace), Accept: &[]api.DoubtCode{api.All}})

	return err
}

// readDefinition returns the descriptions of a table's columns from _schema.json in the same folder, or nil if there is
// no such file.
func readDefinition(file string) (*map[string]string, error) {
	text, err := os.ReadFile(filepath.Join(filepath.Dir(file), "_schema.json"))
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil //nolint:nilnil // not every table has one
	} else if err != nil {
		return nil, err
	}

	var schema struct {
		Tables []struct {
			File    string
			Columns []struct{ Name, Description string }
		}
	}

	if err := json.Unmarshal(text, &schema); err != nil {
		return nil, err
	}

	definition := map[string]string{}

	for _, t := range schema.Tables {
		if t.File != filepath.Base(file) {
			continue
		}

		for _, column := range t.Columns {
			definition[column.Name] = column.Description
		}
	}

	return &definition, nil
}

// upload is a file to upload.
type upload struct {
	name    string
	content []byte
}

// upload uploads files and returns their upload session.
func (s *service) upload(ctx context.Context, files ...upload) (session uuid.UUID, err error) {
	wanted := make([]api.FileToUpload, len(files))
	for i, file := range files {
		wanted[i] = api.FileToUpload{Filename: file.name, Size: int64(len(file.content))}
	}

	prepared, err := s.api.PrepareUploadWithResponse(ctx, nil, api.PrepareUpload{FilesToUpload: wanted})
	if err != nil {
		return session, err
	}

	if prepared.JSON200 == nil {
		return session, refusal("preparing the upload", prepared.HTTPResponse, prepared.Body)
	}

	session = prepared.JSON200.SessionID

	for i, file := range prepared.JSON200.Files {
		done, content := api.FinishUpload{Key: file.Key, UploadID: file.UploadID}, files[i].content

		for i, part := range file.PresignedUrls {
			etag, err := put(ctx, part.URL, content[:part.PartSize])
			if err != nil {
				return session, err
			}

			content = content[part.PartSize:]
			done.Parts = append(done.Parts, api.FinishedPart{PartNumber: int32(i + 1), Etag: etag})
		}

		finished, err := s.api.FinishUploadWithResponse(ctx, session, file.FileID, done)
		if err != nil {
			return session, err
		}

		if finished.JSON200 == nil {
			return session, refusal("finishing the upload", finished.HTTPResponse, finished.Body)
		}
	}

	return session, nil
}

func put(ctx context.Context, address string, part []byte) (etag string, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPut, address, bytes.NewReader(part))
	if err != nil {
		return "", err
	}

	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()

	body, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != http.StatusOK {
		err = refusal("sending a part", response, body)
	}

	return response.Header.Get("ETag"), err
}

// ingest loads the files of a session and returns the ingestion when it has completed. It fails if rows were set aside.
func (s *service) ingest(ctx context.Context, t table, wanted api.NewIngestion) (id uuid.UUID, err error) {
	accepted, err := s.api.CreateIngestionWithResponse(ctx, s.user, t.namespace, t.dataset, nil, wanted)
	if err != nil {
		return id, err
	}

	if accepted.JSON202 == nil {
		return id, refusal("starting the ingestion", accepted.HTTPResponse, accepted.Body)
	}

	now := *accepted.JSON202
	for now.Status == api.IngestionStatusQueued || now.Status == api.IngestionStatusRunning {
		if err := sleep(ctx, loadPoll); err != nil {
			return id, err
		}

		read, err := s.api.GetIngestionWithResponse(ctx, s.user, t.namespace, t.dataset, now.ID)
		if err != nil {
			return id, err
		}

		if read.JSON200 == nil {
			return id, refusal("reading the ingestion", read.HTTPResponse, read.Body)
		}

		now = *read.JSON200
	}

	if now.Status != api.IngestionStatusCompleted || now.Progress.RowsSetAside > 0 {
		text, err := json.Marshal(now)

		return id, errors.Join(fmt.Errorf("the ingestion failed: %s", text), err)
	}

	return now.ID, nil
}

// awaitProfiles returns when every table has a profile, which agents use to find columns and values.
func (s *service) awaitProfiles(ctx context.Context, tables []table, atMost time.Duration) error {
	if atMost == 0 {
		return nil
	}

	ctx, cancel := context.WithTimeout(ctx, atMost)
	defer cancel()

	for i, t := range tables {
		for {
			profile, err := s.api.GetProfileWithResponse(ctx, s.user, t.namespace, t.dataset)
			if err != nil {
				return fmt.Errorf("waiting for the profile of table %d of %d: %w", i+1, len(tables), err)
			}

			if profile.JSON200 != nil {
				break
			}

			if profile.StatusCode() != http.StatusNotFound {
				return refusal("reading a profile", profile.HTTPResponse, profile.Body)
			}

			if err := sleep(ctx, time.Second); err != nil {
				return fmt.Errorf("waiting for the profile of table %d of %d: %w", i+1, len(tables), err)
			}
		}
	}

	fmt.Fprintf(os.Stderr, "eval: %d tables have profiles\n", len(tables))

	return nil
}
