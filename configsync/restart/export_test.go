// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package restart

// SignatureOf is for tests.
var SignatureOf = signatureOf

// AttributeExit completes what is known about an end.
var AttributeExit = attributeExit
