package server

import (
	"context"

	"github.com/google/uuid"

	"quern.dev/quern/api"
	"quern.dev/quern/internal/benchmark"
)

func (h handlers) ListBenchmarks(ctx context.Context, request api.ListBenchmarksRequestObject) (api.ListBenchmarksResponseObject, error) {
	after, err := cursorID(ctx, request.Params.Cursor)
	if err != nil {
		return nil, err
	}

	found, next, err := h.benchmark.List(ctx, callOf(ctx).who, namespacePath(request.Username, request.Namespace), after, pageLimit(request.Params.Limit))
	if err != nil {
		return nil, err
	}

	page := api.ListBenchmarks200JSONResponse{Data: make([]api.Benchmark, len(found)), NextCursor: nextCursor(ctx, next)}
	for i, one := range found {
		page.Data[i] = showBenchmark(one)
	}

	return page, nil
}

func (h handlers) CreateBenchmark(ctx context.Context, request api.CreateBenchmarkRequestObject) (api.CreateBenchmarkResponseObject, error) {
	want := benchmark.New{At: namespacePath(request.Username, request.Namespace), Once: once(ctx, request.Params.IdempotencyKey)}
	if body := request.Body; body != nil {
		want.Mode, want.Model, want.Provider = benchmark.Mode(value(body.Mode)), value(body.Model), value(body.Provider)
	}

	made, err := h.benchmark.Create(ctx, callOf(ctx).who, want)
	if err != nil {
		return nil, err
	}

	return api.CreateBenchmark202JSONResponse{
		Body:    showBenchmark(made),
		Headers: api.CreateBenchmark202ResponseHeaders{Location: h.address("benchmarks", request.Username, request.Namespace, made.ID.String())},
	}, nil
}

func (h handlers) GetBenchmark(ctx context.Context, request api.GetBenchmarkRequestObject) (api.GetBenchmarkResponseObject, error) {
	found, err := h.benchmark.Get(ctx, callOf(ctx).who, namespacePath(request.Username, request.Namespace), request.BenchmarkID, value(request.Params.Compare))
	if err != nil {
		return nil, err
	}

	return api.GetBenchmark200JSONResponse(showBenchmark(found)), nil
}

func (h handlers) CancelBenchmark(ctx context.Context, request api.CancelBenchmarkRequestObject) (api.CancelBenchmarkResponseObject, error) {
	found, err := h.benchmark.Cancel(ctx, callOf(ctx).who, namespacePath(request.Username, request.Namespace), request.BenchmarkID)
	if err != nil {
		return nil, err
	}

	return api.CancelBenchmark200JSONResponse(showBenchmark(found)), nil
}

func (h handlers) ListBenchmarkResults(ctx context.Context, request api.ListBenchmarkResultsRequestObject) (api.ListBenchmarkResultsResponseObject, error) {
	after, err := cursorID(ctx, request.Params.Cursor)
	if err != nil {
		return nil, err
	}

	found, next, err := h.benchmark.Results(ctx, callOf(ctx).who, namespacePath(request.Username, request.Namespace), request.BenchmarkID,
		value(request.Params.Compare), after, pageLimit(request.Params.Limit))
	if err != nil {
		return nil, err
	}

	page := api.ListBenchmarkResults200JSONResponse{Data: make([]api.BenchmarkResult, len(found)), NextCursor: nextCursor(ctx, next)}
	for i, one := range found {
		page.Data[i] = showBenchmarkResult(one)
	}

	return page, nil
}

func showBenchmark(b benchmark.Benchmark) api.Benchmark {
	shown := api.Benchmark{
		ID: b.ID, Status: api.BenchmarkStatus(b.Status), Mode: api.BenchmarkMode(b.Mode), Model: optionalText(b.Model), Provider: optionalText(b.Provider),
		Release: b.Release, Author: b.Author, CreatedAt: b.CreatedAt, FinishedAt: optionalTime(b.FinishedAt), ComparedTo: optionalID(b.Previous),
		Right: int32(b.Counts.Right), Wrong: int32(b.Counts.Wrong), Refused: int32(b.Counts.Refused), AskedBack: int32(b.Counts.AskedBack), //nolint:gosec // at most as many as a namespace has
		Failed: int32(b.Counts.Failed), Better: int32(b.Better), Worse: int32(b.Worse), //nolint:gosec // likewise
	}

	if b.Questions != nil {
		shown.Questions = new(int32(*b.Questions)) //nolint:gosec // likewise
	}

	if b.Outdated != nil {
		shown.Outdated = new(showCauses(b.Outdated))
	}

	if b.Error != nil {
		shown.Error = &api.Failure{Code: api.ErrorCode(b.Error.Code), Message: b.Error.Message}
	}

	return shown
}

func showBenchmarkResult(r benchmark.Compared) api.BenchmarkResult {
	shown := api.BenchmarkResult{
		VerifiedID: r.Question, Question: r.Text, Detail: optionalText(r.Detail), Rows: r.Rows, ExpectedRows: r.Expected, RunID: optionalID(r.Run), Why: showCauses(r.Why),
	}

	if r.Outcome != "" {
		shown.Outcome = new(api.BenchmarkOutcome(r.Outcome))
	}

	if r.Before != "" {
		shown.Before = new(api.BenchmarkOutcome(r.Before))
	}

	if r.Change != "" {
		shown.Change = new(api.BenchmarkResultChange(r.Change))
	}

	return shown
}

func showCauses(list []benchmark.Cause) []api.BenchmarkCause {
	shown := make([]api.BenchmarkCause, len(list))
	for i, one := range list {
		shown[i] = api.BenchmarkCause(one)
	}

	return shown
}

func optionalID(id uuid.UUID) *uuid.UUID {
	if id == uuid.Nil {
		return nil
	}

	return &id
}
