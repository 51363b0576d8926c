package server

import (
	"context"

	"quern.dev/quern/api"
	"quern.dev/quern/internal/build"
)

const protocolVersion = "1.0" // of A2A

func (h handlers) GetVersion(context.Context, api.GetVersionRequestObject) (api.GetVersionResponseObject, error) {
	info := build.Read()
	shown := api.GetVersion200JSONResponse{Version: info.Version, APIVersion: h.apiVersion, A2AVersion: protocolVersion, BuiltAt: optionalTime(info.At)}

	if info.Revision != "" {
		shown.Commit = &info.Revision
	}

	return shown, nil
}
