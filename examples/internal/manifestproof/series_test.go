// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package manifestproof_test

import (
	"slices"

	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb/chunkenc"
	"github.com/prometheus/prometheus/tsdb/chunks"
	"github.com/prometheus/prometheus/util/annotations"
)

// storedSeries is what a prometheus has of a series, from the oldest sample to the latest.
type storedSeries struct {
	lset    labels.Labels
	samples []chunks.Sample
}

// Querier implements storage.Queryable.
func (p *prometheus) Querier(int64, int64) (storage.Querier, error) {
	return &storage.MockQuerier{SelectMockFunction: p.find}, nil
}

func (p *prometheus) find(_ bool, _ *storage.SelectHints, matchers ...*labels.Matcher) storage.SeriesSet {
	found := &selection{}
	for _, s := range p.all {
		if !slices.ContainsFunc(matchers, func(m *labels.Matcher) bool { return !m.Matches(s.lset.Get(m.Name)) }) {
			found.left = append(found.left, storage.NewListSeries(s.lset, s.samples))
		}
	}
	return found
}

// A selection implements storage.SeriesSet.
type selection struct {
	at   storage.Series
	left []storage.Series
}

func (s *selection) Next() bool {
	if len(s.left) == 0 {
		return false
	}
	s.at, s.left = s.left[0], s.left[1:]
	return true
}

func (s *selection) At() storage.Series              { return s.at }
func (*selection) Err() error                        { return nil }
func (*selection) Warnings() annotations.Annotations { return nil }

// A sample implements chunks.Sample.
type sample struct {
	at int64 // milliseconds
	v  float64
}

func (s sample) T() int64                    { return s.at }
func (sample) ST() int64                     { return 0 }
func (s sample) F() float64                  { return s.v }
func (sample) H() *histogram.Histogram       { return nil }
func (sample) FH() *histogram.FloatHistogram { return nil }
func (sample) Type() chunkenc.ValueType      { return chunkenc.ValFloat }
func (s sample) Copy() chunks.Sample         { return s }
