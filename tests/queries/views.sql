-- with
WITH dear AS (SELECT auction, price * 2 AS dbl, ts FROM bids WHERE price > 30)
SELECT d.dbl, a.seller
FROM dear [RANGE 3 SECONDS] d
JOIN auctions [RANGE 3 SECONDS] a ON a.id = d.auction;
WITH dear AS (SELECT auction, price * 2 dbl, ts FROM bids WHERE price > 30)
SELECT d.dbl, a.seller
FROM dear d
JOIN auctions a ON a.id = d.auction AND overlap(d.ts, 3, a.ts, 3);

-- union all
SELECT q.k, a.id
FROM (SELECT auction AS k, ts FROM bids UNION ALL SELECT auction, ts FROM views WHERE who > 3) [RANGE 2 SECONDS]
    q
JOIN auctions [RANGE 2 SECONDS] a ON a.id = q.k;
SELECT q.k, a.id
FROM (SELECT auction k, ts FROM bids UNION ALL SELECT auction, ts FROM views WHERE who > 3) q
JOIN auctions a ON a.id = q.k AND overlap(q.ts, 2, a.ts, 2);

-- nested join
SELECT j.price, p.name
FROM (SELECT b.price, a.seller FROM bids [RANGE 2 SECONDS] b JOIN auctions [RANGE 4 SECONDS] a ON a.id =
    b.auction) [RANGE 3 SECONDS] j
JOIN persons [RANGE 3 SECONDS] p ON p.id = j.seller;
SELECT j.price, p.name
FROM (SELECT b.price, a.seller, greatest(a.ts, b.ts) ts FROM bids b JOIN auctions a ON a.id = b.auction AND
    overlap(b.ts, 2, a.ts, 4)) j
JOIN persons p ON p.id = j.seller AND overlap(j.ts, 3, p.ts, 3);

-- with two levels
WITH x AS (SELECT * FROM bids WHERE channel = 'web'), y AS (SELECT auction, price, ts FROM x WHERE price > 10)
SELECT y.price, v.who
FROM y [RANGE 4 SECONDS], views [RANGE 4 SECONDS] v
WHERE v.auction = y.auction;
SELECT y.price, v.who
FROM bids y, views v
WHERE y.channel = 'web' AND y.price > 10 AND v.auction = y.auction AND overlap(y.ts, 4, v.ts, 4);

-- with anti
WITH web AS (SELECT auction, ts FROM bids WHERE channel = 'web')
SELECT a.id
FROM auctions [RANGE 3 SECONDS] a
LEFT ANTI JOIN web [NOW] w ON w.auction = a.id;
SELECT a.id
FROM auctions a
WHERE NOT EXISTS (FROM bids w WHERE w.channel = 'web' AND w.auction = a.id AND w.ts >= a.ts AND w.ts < a.ts +
    INTERVAL 3 SECOND);

-- union+anti
SELECT q.k
FROM (SELECT auction AS k, ts FROM bids UNION ALL SELECT auction, ts FROM views) [RANGE 2 SECONDS] q
LEFT ANTI JOIN auctions [RANGE 3 SECONDS] a ON a.id = q.k;
SELECT q.k
FROM (SELECT auction k, ts FROM bids UNION ALL SELECT auction, ts FROM views) q
WHERE NOT EXISTS (FROM auctions a WHERE a.id = q.k AND overlap(q.ts, 2, a.ts, 3));

-- with twice
WITH w AS (SELECT auction, bidder, ts FROM bids WHERE channel = 'web')
SELECT w.bidder, a.id
FROM w [RANGE 2 SECONDS]
JOIN auctions [RANGE 5 SECONDS] a ON a.id = w.auction
WHERE NOT EXISTS (SELECT 1 FROM w [RANGE 3 SECONDS] AS x WHERE x.auction = a.id AND x.bidder <> w.bidder);
WITH w AS (SELECT auction, bidder, ts FROM bids WHERE channel = 'web')
SELECT w.bidder, a.id
FROM w
JOIN auctions a ON a.id = w.auction AND overlap(w.ts, 2, a.ts, 5)
WHERE NOT EXISTS (FROM w x WHERE x.auction = a.id AND x.bidder <> w.bidder AND alive(x.ts, 3, greatest(w.ts,
    a.ts)));

-- three levels
SELECT z.p2, v.who
FROM (SELECT y.auction, y.p + 1 AS p2, y.ts FROM (SELECT auction, price AS p, ts FROM bids WHERE channel IS NOT
    NULL) y WHERE y.p > 9) [RANGE 2 SECONDS] z, views [RANGE 2 SECONDS] v
WHERE v.auction = z.auction;
SELECT z.price + 1, v.who
FROM bids z, views v
WHERE z.channel IS NOT NULL AND z.price > 9 AND v.auction = z.auction AND overlap(z.ts, 2, v.ts, 2);

-- nested join of join
SELECT k.price, v.who
FROM (SELECT j.price, j.seller, p.name, j.id FROM (SELECT b.price, a.seller, a.id FROM bids [RANGE 4 SECONDS] b
    JOIN auctions [RANGE 4 SECONDS] a ON a.id = b.auction) [RANGE 3 SECONDS] j JOIN persons [RANGE 9 SECONDS] p
    ON p.id = j.seller) [RANGE 2 SECONDS] k
JOIN views [RANGE 5 SECONDS] v ON v.auction = k.id;
WITH j AS (SELECT b.price, a.seller, a.id, greatest(a.ts, b.ts) ts FROM bids b JOIN auctions a ON a.id =
    b.auction AND overlap(b.ts, 4, a.ts, 4)), k AS (SELECT j.price, j.id, greatest(j.ts, p.ts) ts FROM j JOIN
    persons p ON p.id = j.seller AND overlap(j.ts, 3, p.ts, 9))
SELECT k.price, v.who
FROM k
JOIN views v ON v.auction = k.id AND overlap(k.ts, 2, v.ts, 5);

-- semi of union table
SELECT q.k, c.label
FROM (SELECT id AS k, category, ts FROM auctions UNION ALL SELECT auction, bidder, ts FROM bids) [RANGE 1
    SECOND] q
JOIN cats c ON c.id = q.category
LEFT SEMI JOIN views [RANGE 2 SECONDS] v ON v.auction = q.k;
SELECT q.k, c.label
FROM (SELECT id k, category, ts FROM auctions UNION ALL SELECT auction, bidder, ts FROM bids) q
JOIN cats c ON c.id = q.category
WHERE EXISTS (FROM views v WHERE v.auction = q.k AND overlap(q.ts, 1, v.ts, 2));
