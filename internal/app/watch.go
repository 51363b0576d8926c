package app

import (
	"context"
	"errors"
	"net/http"
	"time"

	"quern.dev/quern/internal/blob"
	"quern.dev/quern/internal/fault"
	"quern.dev/quern/internal/postgres"
	"quern.dev/quern/internal/server"
)

// startDatabase returns an error that ends the start if the schema does not fit or the server refuses the settings. If
// the database does not answer, the service starts, is not ready, and checks again later.
func (a *App) startDatabase(ctx context.Context) error {
	err := a.db.Ping(ctx)
	if err == nil {
		return a.checkDatabase(ctx)
	}

	found := databaseFailed(err, "QUERN_DATABASE_URL")

	switch postgres.RefusalOf(err) {
	case postgres.BadPassword, postgres.NoDatabase:
		return found.problem("the database")
	default:
		a.log.WarnContext(ctx, "the database does not answer yet", "error", found.Found)

		return nil
	}
}

// checkDatabase refuses a schema that does not fit, and a role without the necessary rights.
func (a *App) checkDatabase(ctx context.Context) error {
	if err := a.db.CheckSchema(ctx); err != nil {
		return err
	}

	excess, err := a.db.CheckRights(ctx)
	if len(excess) > 0 {
		a.log.WarnContext(ctx, "the database role can change the audit: run `quernd doctor`", "rights", postgres.Few(excess))
	}

	return err
}

// startStore returns an error that ends the start if the bucket belongs to another database, does not exist or refuses
// the credentials. A store that does not answer does not end the start.
func (a *App) startStore(ctx context.Context) error {
	err := a.checkLocation(ctx)
	problem := a.location.storeProblem()

	switch {
	case refused(err):
		return err
	case misconfigured(problem):
		return storeFailed("object store", problem).problem("the object store")
	case problem != nil:
		a.log.WarnContext(ctx, "the object store does not answer yet", "error", causeOf(problem))
	}

	return nil
}

// misconfigured reports whether the store responds that the settings are wrong.
func misconfigured(err error) bool {
	refusal, answered := errors.AsType[*blob.RefusalError](err)
	if !answered {
		return false
	}

	switch refusal.Code {
	case "NoSuchBucket", "InvalidBucketName", "AuthorizationHeaderMalformed", "PermanentRedirect", "IllegalLocationConstraintException":
		return true
	case "RequestTimeTooSkewed": // the clocks can be corrected while the service waits
		return false
	default:
		return refusal.Status == http.StatusForbidden || refusal.Status == http.StatusUnauthorized
	}
}

// checkLocation checks that the location in the object store belongs to this database: two databases with the same
// location would remove each other's objects. A refusal is final; any other error means that the comparison was not
// possible now.
func (a *App) checkLocation(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, a.config.S3.Timeout+lookAgain)
	defer cancel()

	return a.location.check(ctx)
}

// watch checks periodically whether this process may continue: whether the location belongs to this database, and
// whether the schema is too new.
func (a *App) watch(ctx context.Context, failed chan<- error) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(storeEvery):
		}

		outdated, err := a.db.Outdated(ctx)
		if outdated == nil {
			err = errors.Join(err, a.checkLocation(ctx))
		}

		switch {
		case ctx.Err() != nil:
			return
		case outdated != nil, refused(err):
			err = errors.Join(outdated, err)
			a.log.ErrorContext(ctx, "this process cannot continue and stops", "error", err)
			failed <- err

			return
		case err != nil:
			a.quiet.WarnContext(ctx, "the database and the bucket could not be compared", "error", err)
		}
	}
}

// lookAtDatabase checks whether the database answers, and checks the schema until it has fitted once. Other requests
// share the result, so the check does not end with the request that began it.
func (a *App) lookAtDatabase(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), readyTimeout)
	defer cancel()

	err := a.db.Ping(ctx)
	if err == nil && !a.schemaFits.Load() {
		err = a.checkDatabase(ctx)
		a.schemaFits.Store(err == nil)
	}

	return err
}

// ready returns the state of all dependencies. Load balancers call it about every second, and callers need no token.
func (a *App) ready(ctx context.Context) []server.Check {
	database := server.Check{Name: "database", Required: true, OK: true}

	if err := a.database.recent(func() error { return a.lookAtDatabase(ctx) }); err != nil {
		database.OK, database.Problem = false, databaseProblem(err)
	}

	store := server.Check{Name: "object store", OK: true}
	if err := a.location.storeProblem(); err != nil {
		store.OK, store.Problem = false, storeFailed("object store", err).problem("").Error()
	}

	issuer := server.Check{Name: "issuer", OK: a.authenticator.IssuerAnswers()}
	if !issuer.OK {
		issuer.Problem = "the last attempt to read its keys failed"
	}

	traces := server.Check{Name: "tracing store", OK: a.tracing.Answers()}
	if !traces.OK {
		traces.Problem = "it did not respond to the last request"
	}

	folder := a.folder.State()

	checks := []server.Check{
		{Name: "process", Required: true, OK: !a.leaving.Load()},
		database,
		{Name: "work folder", Required: true, OK: !folder.Full, Problem: folder.Problem},
		store, issuer,
	}
	if a.config.Tracing.Kind != "none" {
		checks = append(checks, traces)
	}

	return checks
}

// databaseProblem describes what is wrong with the database: the connection or the schema.
func databaseProblem(err error) string {
	if e, ok := errors.AsType[*fault.Error](err); ok && errors.Unwrap(e) == nil {
		return e.Message
	}

	return databaseFailed(err, "QUERN_DATABASE_URL").problem("").Error()
}
