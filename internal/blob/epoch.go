package blob

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/s3"

	"quern.dev/quern/internal/fault"
)

const (
	epochKey    = "epoch"
	markKey     = "mark"
	maxEpochLen = 4 << 10
)

// Epoch identifies the one database that may use a location. A restored or cloned copy of the database has to claim
// the location before it may use it.
type Epoch struct {
	Deployment string    `json:"deployment"`
	Database   string    `json:"database"` // id of the copy of the deployment's database
	Number     int64     `json:"epoch"`
	Mark       time.Time `json:"-"` // last sign of life of this epoch; zero if there is none
}

// mark is a separate object, so that a slow process can overwrite a sign of life but never the epoch.
type mark struct {
	Epoch int64     `json:"epoch"`
	At    time.Time `json:"mark"`
}

// Epoch reads the epoch of the location. NotFound if the location has none yet.
func (s *Store) Epoch(ctx context.Context) (e Epoch, err error) {
	if err := s.readJSON(ctx, epochKey, &e); err != nil {
		return e, err
	}

	var last mark

	err = s.readJSON(ctx, markKey, &last)
	if last.Epoch == e.Number {
		e.Mark = last.At
	}

	if fault.Is(err, fault.NotFound) {
		err = nil
	}

	return e, err
}

// ClaimEpoch sets the epoch of a location that has none. If another process set it first, ClaimEpoch does nothing and
// the caller must read the epoch again. Conflict if the location belongs to another deployment.
func (s *Store) ClaimEpoch(ctx context.Context, e Epoch) error {
	if err := s.ClaimDeployment(ctx, e.Deployment); err != nil {
		return err
	}

	err := s.writeJSON(ctx, epochKey, e, new("*"))
	if hasStatus(err, http.StatusPreconditionFailed) || hasStatus(err, http.StatusConflict) {
		return nil
	}

	return translate(err)
}

// TakeEpoch binds the location to this copy of the database, replacing any other copy. Conflict if the location
// belongs to another deployment.
func (s *Store) TakeEpoch(ctx context.Context, e Epoch) error {
	if err := s.ClaimDeployment(ctx, e.Deployment); err != nil {
		return err
	}

	if err := s.writeJSON(ctx, epochKey, e, nil); err != nil {
		return translate(err)
	}

	return s.MarkEpoch(ctx, e)
}

// MarkEpoch writes a sign of life.
func (s *Store) MarkEpoch(ctx context.Context, e Epoch) error {
	return translate(s.writeJSON(ctx, markKey, mark{Epoch: e.Number, At: e.Mark}, nil))
}

func (s *Store) readJSON(ctx context.Context, key string, value any) error {
	object, err := s.Read(ctx, key, 0, maxEpochLen)
	if err != nil {
		return err
	}
	defer func() { _ = object.Close() }()

	content, err := io.ReadAll(object)
	if err != nil {
		return err
	}

	return json.Unmarshal(content, value)
}

func (s *Store) writeJSON(ctx context.Context, key string, value any, unless *string) error {
	content, err := json.Marshal(value)
	if err != nil {
		return err
	}

	_, err = s.calls.PutObject(ctx, &s3.PutObjectInput{
		Bucket: &s.bucket, Key: s.full(key), Body: bytes.NewReader(content), IfNoneMatch: unless,
	})

	return err
}
