package app

import (
	"net/http"
	"time"

	"quern.dev/quern/internal/icebergrest"
)

// schemas returns the store of the schemas, one for each statement on Trino.
func (a *App) schemas() icebergrest.Schemas { return icebergrest.Schemas{DB: a.db, Now: time.Now} }

// trinoCatalog returns the catalog that Trino reads.
func (a *App) trinoCatalog() http.Handler {
	return &icebergrest.Catalog{Schemas: a.schemas(), Lake: a.lake, Log: a.quiet, Secret: a.config.Catalog.Secret.Reveal()}
}
