package e2e

import (
	"context"
	"net/http"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestCloneRefused checks that only one of two copies of a database can use a location, and that the operator selects which one.
func TestCloneRefused(t *testing.T) {
	t.Parallel()

	t.Run("a clone", func(t *testing.T) {
		t.Parallel()

		s := start(t)
		d := newFilled(t, s, "ada", s.newKey().token("ada"))
		d.stored(`{"data": [{"n": 1}, {"n": 2}]}`)

		clone := s.clone()
		clone.requireRefused("another copy of this database")

		checkup, err := clone.doctor()
		require.Error(t, err)
		require.Regexp(t, `(?m)^fail +store epoch +.*another copy of this database.*quernd store claim`, checkup)

		_, err = clone.command("fsck", "--delete")
		require.ErrorContains(t, err, "another copy of this database")

		checkup, err = s.doctor()
		require.Regexp(t, `(?m)^ok +store epoch +database and bucket belong together, epoch 1`, checkup, err)
		require.True(t, s.ready("ok"), "the original goes on")
		require.Equal(t, numbers(1, 2), d.table().rows)

		// A new prefix is empty, and a database that was in use does not accept an empty location by itself.
		elsewhere := &service{t: t, databaseURL: clone.databaseURL, place: newPlace(t), settings: s.settings}
		elsewhere.requireRefused("has no epoch")

		// The tables have addresses in the location of the original.
		_, err = elsewhere.command("store", "claim")
		require.ErrorContains(t, err, "the tables of this database have addresses such as s3://"+s.place.bucket+"/"+s.place.prefix)

		// The operator selects the clone, and the original stops by itself.
		require.Contains(t, clone.quernd("store", "claim"), "epoch 2")
		await(t, "the original stops", func() bool { return !s.running() })
		require.False(t, s.process.ProcessState.Success())
		require.Contains(t, s.log(), "another copy of this database")
		s.requireRefused("another copy of this database")

		s.databaseURL, s.settings = clone.databaseURL, append(s.settings, "QUERN_DATABASE_URL="+clone.databaseURL)
		s.restart()
		require.Equal(t, numbers(1, 2), d.table().rows)
	})

	t.Run("set back in place", func(t *testing.T) {
		t.Parallel()

		s := start(t)
		require.Contains(t, s.quernd("store", "claim"), "epoch 2")
		s.stop()
		s.restart()

		// This is the state after a restore of the database server to an earlier time: the same database with older data.
		s.exec(`UPDATE store_epoch SET mark = mark - interval '1 hour'`)
		await(t, "the service stops", func() bool { return !s.running() })
		require.Contains(t, s.log(), "restored to an earlier time")
		s.requireRefused("restored to an earlier time")

		s.exec(`UPDATE store_epoch SET epoch = 1`)
		s.requireRefused("is in epoch 2 and this database in epoch 1")

		require.Contains(t, s.quernd("store", "claim"), "epoch 3")
		s.restart()
	})

	t.Run("two at once on an empty place", func(t *testing.T) {
		t.Parallel()

		for range rounds(20) {
			settings := append(newPlace(t).settings(), "QUERN_DATABASE_URL="+migratedDatabase(t))
			replicas := []*service{}

			for range 2 {
				one := &service{t: t, written: &output{}, settings: slices.Concat(unstarted(t), settings)}
				one.run() // does not wait until it is ready
				replicas = append(replicas, one)
			}

			for _, one := range replicas {
				one.root = "http://" + one.listening("api")
				await(t, "it is ready", func() bool { return readiness(t, one) == http.StatusOK })
			}

			for _, one := range replicas {
				one.stop()
			}
		}
	})
}

// unstarted returns the settings of a service without its database and its location.
func unstarted(t *testing.T) []string {
	t.Helper()

	return []string{
		"QUERN_LISTEN_ADDR=127.0.0.1:0", "QUERN_ADMIN_ADDR=127.0.0.1:0", "QUERN_PUBLIC_URL=http://quern.test", "QUERN_SECRET=" + strings.Repeat("x", 32),
		"QUERN_OIDC_AUDIENCE=quern", "QUERN_OIDC_ISSUER=" + common.realm(t).issuer(), "QUERN_DRAIN_DELAY=0s", "QUERN_SANDBOX_IDLE_PROCESSES=1",
	}
}

// clone returns a service with a copy of the database and the same location. It is not started.
func (s *service) clone() *service {
	s.t.Helper()

	backup, database := s.t.TempDir()+"/backup.sql", createDatabase(s.t)
	dump(s.t, s.databaseURL, backup)
	undump(s.t, database, backup)

	return &service{t: s.t, databaseURL: database, place: s.place, settings: s.settings}
}

// requireRefused checks that quernd does not start and prints the reason and the remedy.
func (s *service) requireRefused(reason string) {
	s.t.Helper()

	ctx, cancel := context.WithTimeout(s.t.Context(), patience)
	defer cancel()

	serve := exec.CommandContext(ctx, binary(), "serve")
	serve.Env = slices.Concat(s.settings, s.place.settings(), []string{
		"QUERN_DATABASE_URL=" + s.databaseURL, "QUERN_SANDBOX_DIR=" + s.t.TempDir(), "QUERN_LISTEN_ADDR=127.0.0.1:0", "QUERN_ADMIN_ADDR=127.0.0.1:0",
	})
	written, err := serve.CombinedOutput()
	require.Error(s.t, err)
	require.Contains(s.t, string(written), reason)
	require.Contains(s.t, string(written), "quernd store claim")
	require.NotContains(s.t, string(written), "listening")
}

// doctor returns the output of `quernd doctor` with the settings of the service.
func (s *service) doctor() (string, error) {
	command := exec.CommandContext(s.t.Context(), binary(), "doctor")
	command.Env = slices.Concat(s.settings, s.place.settings(), []string{"QUERN_DATABASE_URL=" + s.databaseURL, "QUERN_SANDBOX_DIR=" + s.t.TempDir()})
	printed, err := command.Output()

	return string(printed), err
}
