// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package fleetproof_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"time"
)

// A version is one that etcd had of an object.
type version struct {
	Revision int64
	Key      string
	Value    []byte // nil where it was deleted
}

// etcdAnswer is what the JSON gateway of etcd sends for a watch.
type etcdAnswer struct {
	Result struct {
		Canceled bool   `json:"canceled"`
		Reason   string `json:"cancel_reason"`
		Events   []struct {
			Type string `json:"type"`
			KV   struct {
				Key      []byte `json:"key"`
				Value    []byte `json:"value"`
				Revision string `json:"mod_revision"`
			} `json:"kv"`
		} `json:"events"`
	} `json:"result"`
}

// follow tells of every version of what lies between two keys, from the beginning, in order, until ctx ends. etcd may be away meanwhile. A version that can't
// be had any more is an error.
func follow(ctx context.Context, url string, client *http.Client, from, to string, told func(version)) error {
	next := int64(1)
	for ctx.Err() == nil {
		if err := followOnce(ctx, url, client, from, to, &next, told); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
		case <-time.After(50 * time.Millisecond):
		}
	}
	return nil
}

// followOnce goes on until the connection ends. Its error says that versions are lost.
func followOnce(ctx context.Context, url string, client *http.Client, from, to string, next *int64, told func(version)) error {
	body, err := json.Marshal(map[string]any{"create_request": map[string]any{
		"key": []byte(from), "range_end": []byte(to), "start_revision": strconv.FormatInt(*next, 10),
	}})
	if err != nil {
		return err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, url+"/v3/watch", bytes.NewReader(body))
	if err != nil {
		return err
	}
	response, err := client.Do(request)
	if err != nil {
		return nil //nolint:nilerr // it is away
	}
	defer response.Body.Close()
	for answers := json.NewDecoder(response.Body); ; {
		var a etcdAnswer
		if answers.Decode(&a) != nil {
			return nil
		}
		if a.Result.Canceled {
			return fmt.Errorf("the watch of %s from %d on was cancelled: %s", from, *next, a.Result.Reason)
		}
		for _, e := range a.Result.Events {
			revision, err := strconv.ParseInt(e.KV.Revision, 10, 64)
			if err != nil {
				return fmt.Errorf("reading a version of %s: %w", e.KV.Key, err)
			}
			v := version{Revision: revision, Key: string(e.KV.Key), Value: e.KV.Value}
			if e.Type == "DELETE" {
				v.Value = nil
			}
			told(v)
			*next = max(*next, revision+1)
		}
	}
}

// newest is the revision of the newest version that there is between two keys.
func newest(ctx context.Context, url string, client *http.Client, from, to string) (int64, error) {
	body, err := json.Marshal(map[string]any{
		"key": []byte(from), "range_end": []byte(to), "sort_order": "DESCEND", "sort_target": "MOD", "limit": "1", "keys_only": true,
	})
	if err != nil {
		return 0, err
	}
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, url+"/v3/kv/range", bytes.NewReader(body))
	if err != nil {
		return 0, err
	}
	response, err := client.Do(request)
	if err != nil {
		return 0, err
	}
	defer response.Body.Close()
	var answer struct {
		KVs []struct {
			Revision string `json:"mod_revision"`
		} `json:"kvs"`
	}
	if err := json.NewDecoder(response.Body).Decode(&answer); err != nil {
		return 0, err
	}
	if len(answer.KVs) != 1 {
		return 0, fmt.Errorf("etcd names %d newest keys from %s on, want 1", len(answer.KVs), from)
	}
	return strconv.ParseInt(answer.KVs[0].Revision, 10, 64)
}
