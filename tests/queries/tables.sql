-- table inner
SELECT b.id, c.label FROM auctions [RANGE 5 SECONDS] b JOIN cats c ON c.id = b.category;
SELECT b.id, c.label FROM auctions b JOIN cats c ON c.id = b.category;

-- table left
SELECT b.id, c.label, x.price
FROM auctions [RANGE 5 SECONDS] b
LEFT JOIN cats c ON c.id = b.category
JOIN bids [RANGE 1 SECOND] x ON x.auction = b.id;
SELECT b.id, c.label, x.price
FROM auctions b
JOIN bids x ON x.auction = b.id AND overlap(b.ts, 5, x.ts, 1)
LEFT JOIN cats c ON c.id = b.category;

-- table anti
SELECT b.id FROM auctions [NOW] b LEFT ANTI JOIN cats c ON c.id = b.category;
SELECT b.id FROM auctions b WHERE NOT EXISTS (FROM cats c WHERE c.id = b.category);

-- table semi left
SELECT b.id, x.price
FROM auctions [RANGE 3 SECONDS] b
LEFT SEMI JOIN cats c ON c.id = b.category
LEFT JOIN bids [RANGE 1 SECOND] x ON x.auction = b.id;
SELECT b.id, x.price
FROM (FROM auctions b WHERE EXISTS (FROM cats c WHERE c.id = b.category)) b
LEFT JOIN bids x ON x.auction = b.id AND overlap(b.ts, 3, x.ts, 1);

-- table left + stream on it
SELECT a.id, c.label, b.price
FROM auctions [RANGE 3 SECONDS] a
LEFT JOIN cats c ON c.id = a.category
LEFT JOIN bids [RANGE 2 SECONDS] b ON b.auction = a.id AND length(c.label) > 3;
SELECT a.id, c.label, b.price
FROM auctions a
LEFT JOIN cats c ON c.id = a.category
LEFT JOIN bids b ON b.auction = a.id AND length(c.label) > 3 AND overlap(a.ts, 3, b.ts, 2);
