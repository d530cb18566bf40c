// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package providertest

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strconv"
	"time"

	"github.com/belayproject/belay/internal/strictjson"
	"github.com/belayproject/belay/machine/provider"
)

const (
	// maxRequest bounds the body of a request.
	maxRequest = 1 << 20
	// maxReply bounds what a client reads: some 100,000 instances.
	maxReply = 64 << 20
	// callPath comes before the method of a call.
	callPath = "/v1/"
)

// Calls as they are sent. Config is what the provider's part says; secrets are not sent.
type (
	createCall struct {
		Request   provider.CreateRequest `json:"request"`
		Config    Config                 `json:"config"`
		Bootstrap map[string]string      `json:"bootstrap,omitempty"` // SHA-256 in hex of each value
	}
	updateCall struct {
		Request provider.UpdateRequest `json:"request"`
		Config  Config                 `json:"config"`
	}
	adoptCall struct {
		From provider.Ref `json:"from"`
		As   createCall   `json:"as"`
	}
	refCall struct {
		Ref   provider.Ref `json:"ref"`
		ID    string       `json:"id,omitempty"`
		Limit int          `json:"limit,omitempty"`
	}
	configCall struct {
		Config Config `json:"config"`
	}
	resizeCall struct {
		Name   string `json:"name"`
		Size   int    `json:"size"`
		Config Config `json:"config"`
	}
	nothing struct{}
)

// An errorReply is the body of a reply that is an error.
type errorReply struct {
	Class   provider.Class `json:"class"`
	Message string         `json:"message"`
}

// statuses are those of the classes.
var statuses = map[provider.Class]int{
	provider.InvalidConfig: http.StatusBadRequest,
	provider.Unauthorized:  http.StatusUnauthorized,
	provider.NotFound:      http.StatusNotFound,
	provider.Conflict:      http.StatusConflict,
	provider.RateLimited:   http.StatusTooManyRequests,
	provider.Stockout:      http.StatusInsufficientStorage,
	provider.NotSupported:  http.StatusNotImplemented,
	provider.Unavailable:   http.StatusServiceUnavailable,
	provider.Internal:      http.StatusInternalServerError,
}

// readBody reads the body of a request into a call.
func readBody(w http.ResponseWriter, r *http.Request, into any) error {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxRequest))
	if err == nil {
		err = strictjson.Decode(body, into)
	}
	var large *http.MaxBytesError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &large):
		return invalid("the request has more than %d bytes", large.Limit)
	}
	return invalid("the request is not understood: %w", err)
}

// reply writes a reply. What can't be sent any more is the loss of the caller.
func reply(w http.ResponseWriter, status int, value any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(value) // the caller has left
}

// replyError writes an error by its class.
func replyError(w http.ResponseWriter, err error) {
	class := provider.ClassOf(err)
	message := err.Error()
	var e *provider.Error
	if errors.As(err, &e) {
		message = e.Err.Error()
		if e.After > 0 {
			w.Header().Set("Retry-After", strconv.FormatInt(seconds(e.After), 10))
		}
	}
	reply(w, statuses[class], errorReply{class, message})
}

// errorOf makes an error of a reply. NotFound is believed only of a fake cloud: any server answers 404 for a path that it does not have.
func errorOf(status int, header http.Header, body []byte) *provider.Error {
	var e errorReply
	if err := json.Unmarshal(body, &e); err != nil || statuses[e.Class] != status {
		e = errorReply{provider.Internal, "status " + strconv.Itoa(status) + ", and no reply of a fake cloud"}
		switch status {
		case http.StatusUnauthorized, http.StatusForbidden:
			e.Class = provider.Unauthorized
		case http.StatusTooManyRequests:
			e.Class = provider.RateLimited
		case http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
			e.Class = provider.Unavailable
		}
	}
	err := provider.Errorf(e.Class, "%s", e.Message)
	if n, parse := strconv.ParseUint(header.Get("Retry-After"), 10, 16); parse == nil {
		err.After = time.Duration(n) * time.Second
	}
	return err
}
