package query

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"github.com/google/uuid"

	"quern.dev/quern/api"
	"quern.dev/quern/bench/rig"
)

const (
	resultPoll   = 50 * time.Millisecond
	resultRounds = 3
)

// Large measures a result of many rows as a file: until a client has all bytes of a long statement, reading pieces in parallel. Its
// twin is DuckDB's COPY to Parquet, followed by sending the same number of bytes to the store and reading them back.
func Large(ctx context.Context, b *rig.Bench) ([]rig.Result, error) {
	s, stop, err := b.StartService(ctx, fmt.Sprintf("QUERN_SANDBOX_IDLE_PROCESSES=%d", Ready), fmt.Sprintf("QUERN_QUERY_MEMORY=%dMiB", queryMemory>>20))
	if err != nil {
		return nil, err
	}
	defer stop()

	client, err := api.Connect(api.Settings{Server: "http://" + s.API, Token: func(context.Context) (string, error) { return s.Tokens["ada"], nil }})
	if err != nil {
		return nil, err
	}

	rows := 5 * b.Rows
	statement := fmt.Sprintf(`SELECT range AS id, (range * 7919) %% 1000003 AS number, (range %% 100) / 7.0 AS price, 'city ' || (range %% 5000) AS city FROM range(%d)`, rows)

	var results []rig.Result

	for _, format := range []api.StatementFormat{api.StatementFormatParquet, api.StatementFormatArrow} {
		var peak rig.Footprint

		path := filepath.Join(b.Dir, "result."+string(format))

		ours, bare, err := rig.Alternate(ctx, min(resultRounds, b.Loads),
			rig.Side{Name: "ours", Round: func(ctx context.Context) (float64, string, error) {
				return savedResult(ctx, s, client, api.QueryRequest{Query: statement, Format: &format}, path, &peak)
			}},
			rig.Side{Name: "bare", Round: func(ctx context.Context) (float64, string, error) { return copiedResult(ctx, b, s, statement, path) }})
		if err != nil {
			return nil, fmt.Errorf("%s: %w", format, err)
		}

		own, err := rig.FieldOf(s.PID, "status", "VmHWM:")
		if err != nil {
			return nil, err
		}

		fmt.Fprintf(os.Stderr, "result-%s: %d rows; quernd at most %d MiB, its sealed process %d MiB\n", format, rows, own>>20, peak.Child>>20)
		results = append(results, rig.Result{Name: "result-" + string(format), Ours: rig.Seconds(ours), Bare: rig.Seconds(bare), Ratio: bare / ours})
	}

	return results, nil
}

// savedResult runs a long statement and reads its result into a file.
func savedResult(ctx context.Context, s *rig.Service, client *api.Client, request api.QueryRequest, path string, peak *rig.Footprint) (float64, string, error) {
	began := time.Now()

	now, err := api.Read[api.Statement](client.RunQuery(ctx, &api.RunQueryParams{Prefer: new("respond-async")}, request))

	for err == nil && (now.Status == api.StatementStatusQueued || now.Status == api.StatementStatusRunning) {
		time.Sleep(resultPoll)

		if err := peak.Watch(s.PID); err != nil {
			return 0, "", err
		}

		now, err = api.Read[api.Statement](client.GetStatement(ctx, now.ID))
	}

	if err != nil {
		return 0, "", err
	}

	if now.Status != api.StatementStatusCompleted {
		return 0, "", fmt.Errorf("the statement is %s: %+v", now.Status, now.Error)
	}

	written := time.Since(began)

	size, err := (&api.Saver{Client: client, Path: path}).Save(ctx, now.ID)
	took := time.Since(began)

	if err == nil {
		err = forgetStatement(ctx, s, now.ID)
	}

	return float64(took), fmt.Sprintf("%v for %d bytes, %v of it until the result was in the store", took, size, written), err
}

func forgetStatement(ctx context.Context, s *rig.Service, id uuid.UUID) error {
	request, err := s.Request(ctx, "ada", http.MethodDelete, "/query/statements/"+id.String(), nil)
	if err != nil {
		return err
	}

	_, err = rig.Get(request)

	return err
}

// copiedResult writes the result with DuckDB alone, and moves as many bytes as ours through the store.
func copiedResult(ctx context.Context, b *rig.Bench, s *rig.Service, statement, path string) (float64, string, error) {
	copied := filepath.Join(b.Dir, "bare.parquet")
	began := time.Now()

	err := rig.BareDuckDB(fmt.Sprintf(`SET memory_limit = '%dB'`, queryMemory), fmt.Sprintf(`SET threads = %d`, runtime.NumCPU()),
		fmt.Sprintf(`SET temp_directory = '%s'`, b.Dir), fmt.Sprintf(`COPY (%s) TO '%s' (FORMAT parquet, COMPRESSION zstd)`, statement, copied))
	if err != nil {
		return 0, "", err
	}
	defer os.Remove(copied)

	computed := time.Since(began)

	file, err := os.Open(path)
	if err != nil {
		return 0, "", err
	}
	defer file.Close()

	info, err := file.Stat()
	if err != nil {
		return 0, "", err
	}

	key, err := s.Location.Upload(ctx, info.Size(), rig.OfFile(file))
	if err != nil {
		return 0, "", err
	}

	fetched := filepath.Join(b.Dir, "bare.fetched")
	defer os.Remove(fetched)

	err = s.Location.Fetch(ctx, key, fetched)
	took := time.Since(began)

	if err == nil {
		err = s.Location.Remove(ctx, key)
	}

	return float64(took), fmt.Sprintf("%v for %d bytes, %v of it for COPY", took, info.Size(), computed), err
}
