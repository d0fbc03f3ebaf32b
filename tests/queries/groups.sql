-- tvf flink TABLE()
SELECT auction, window_start, window_end, COUNT(*) AS n
FROM TABLE(TUMBLE(TABLE bids, DESCRIPTOR(ts), INTERVAL '10' SECONDS))
GROUP BY auction, window_start, window_end;
SELECT auction, tumble(b.ts, 10) s, tumble(b.ts, 10) + INTERVAL 10 SECOND e, count(*) FROM bids b GROUP BY ALL;

-- tvf hop group
SELECT auction, window_end, COUNT(*) AS n, MAX(price) AS m
FROM HOP(TABLE bids, DESCRIPTOR(ts), INTERVAL 2 SECONDS, INTERVAL 10 SECONDS)
GROUP BY auction, window_start, window_end;
SELECT auction, s + INTERVAL 10 SECOND, count(*), max(price)
FROM hops(2)
JOIN bids b ON b.ts >= s AND b.ts < s + INTERVAL 10 SECOND
GROUP BY auction, s;

-- distinct
SELECT DISTINCT a.id, a.seller
FROM auctions [RANGE 5 SECONDS] a
JOIN bids [RANGE 5 SECONDS] b ON b.auction = a.id;
SELECT id, seller
FROM (SELECT DISTINCT a.id, a.seller, greatest(a.ts, b.ts) FROM auctions a JOIN bids b ON b.auction = a.id AND
    overlap(a.ts, 5, b.ts, 5));

-- group window
SELECT b.channel, window.start, COUNT(*) AS n, COUNT(DISTINCT b.bidder) AS d, SUM(b.price) FILTER (WHERE b.price
    > 20) AS s, AVG(b.price) AS av
FROM bids [NOW] b
GROUP BY b.channel, WINDOW(event_time, '10 seconds')
HAVING COUNT(*) > 1;
SELECT channel, tumble(b.ts, 10), count(*), count(DISTINCT bidder), sum(price) FILTER (price > 20), avg(price)
FROM bids b
GROUP BY 1, 2
HAVING count(*) > 1;

-- group join
SELECT a.category, window.end, MAX(b.price) AS m
FROM auctions [RANGE 5 SECONDS] a
JOIN bids [RANGE 5 SECONDS] b ON b.auction = a.id
GROUP BY a.category, WINDOW(event_time, '10 seconds', '5 seconds');
WITH j AS (SELECT a.category, b.price, greatest(a.ts, b.ts) t FROM auctions a JOIN bids b ON b.auction = a.id
    AND overlap(a.ts, 5, b.ts, 5))
SELECT category, s + INTERVAL 10 SECOND, max(price)
FROM hops(5)
JOIN j ON t >= s AND t < s + INTERVAL 10 SECOND
GROUP BY category, s;

-- group left
SELECT window.start, COUNT(b.price) AS matched, COUNT(*) AS all_rows
FROM auctions [RANGE 3 SECONDS] a
LEFT JOIN bids [RANGE 1 SECONDS] b ON b.auction = a.id
GROUP BY WINDOW(event_time, '10 seconds');
SELECT tumble(t, 10), count(price), count(*)
FROM (SELECT b.price, CASE WHEN b.ts IS NULL THEN a.ts + INTERVAL 3 SECOND ELSE greatest(a.ts, b.ts) END t FROM
    auctions a LEFT JOIN bids b ON b.auction = a.id AND overlap(a.ts, 3, b.ts, 1))
GROUP BY 1;

-- top n
SELECT *
FROM (SELECT auction, price, bidder, window_end, ROW_NUMBER() OVER (PARTITION BY window_start, window_end,
    auction ORDER BY price DESC) AS rank FROM TUMBLE(TABLE bids, DESCRIPTOR(ts), INTERVAL '10' SECONDS))
WHERE rank <= 2;
SELECT auction, price, bidder, w, r
FROM (SELECT auction, price, bidder, tumble(b.ts, 10) + INTERVAL 10 SECOND w, row_number() OVER (PARTITION BY
    tumble(b.ts, 10), auction ORDER BY price DESC, auction DESC, bidder DESC NULLS LAST) r FROM bids b)
WHERE r <= 2;

-- qualify
SELECT a.seller, b.price
FROM auctions [RANGE 9 SECONDS] a
JOIN bids [RANGE 1 SECONDS] b ON b.auction = a.id
QUALIFY ROW_NUMBER() OVER (PARTITION BY WINDOW(event_time, '10 seconds'), a.seller ORDER BY b.price) = 1;
SELECT seller, price
FROM (SELECT a.seller, b.price, row_number() OVER (PARTITION BY tumble(greatest(a.ts, b.ts), 10), a.seller ORDER
    BY b.price, a.seller) r FROM auctions a JOIN bids b ON b.auction = a.id AND overlap(a.ts, 9, b.ts, 1))
WHERE r = 1;

-- qualify group
SELECT auction, window_end, COUNT(*) AS n
FROM TUMBLE(TABLE bids, DESCRIPTOR(ts), INTERVAL 10 SECONDS)
GROUP BY auction, window_start, window_end
QUALIFY ROW_NUMBER() OVER (PARTITION BY window_start, window_end ORDER BY COUNT(*) DESC) <= 2;
SELECT auction, w, n
FROM (SELECT *, row_number() OVER (PARTITION BY w ORDER BY n DESC, auction DESC) r FROM (SELECT auction,
    tumble(b.ts, 10) + INTERVAL 10 SECOND w, count(*) n FROM bids b GROUP BY 1, 2))
WHERE r <= 2;

-- left+distinct
SELECT DISTINCT a.id, b.bidder
FROM auctions [RANGE 3 SECONDS] a
LEFT JOIN bids [RANGE 1 SECOND] b ON b.auction = a.id;
SELECT id, bidder
FROM (SELECT DISTINCT id, bidder, t FROM (SELECT a.id, a.seller, a.category, b.price, b.bidder, CASE WHEN b.ts
    IS NULL THEN a.ts + INTERVAL 3 SECOND ELSE greatest(a.ts, b.ts) END t FROM auctions a LEFT JOIN bids b ON
    b.auction = a.id AND overlap(a.ts, 3, b.ts, 1)));

-- left+qualify
SELECT a.seller, b.price
FROM auctions [RANGE 3 SECONDS] a
LEFT JOIN bids [RANGE 1 SECOND] b ON b.auction = a.id
QUALIFY ROW_NUMBER() OVER (PARTITION BY WINDOW(event_time, '10 seconds'), a.seller ORDER BY b.price DESC) = 1;
SELECT seller, price
FROM (SELECT seller, price, row_number() OVER (PARTITION BY tumble(t, 10), seller ORDER BY price DESC NULLS
    LAST, seller DESC) r FROM (SELECT a.id, a.seller, a.category, b.price, b.bidder, CASE WHEN b.ts IS NULL THEN
    a.ts + INTERVAL 3 SECOND ELSE greatest(a.ts, b.ts) END t FROM auctions a LEFT JOIN bids b ON b.auction =
    a.id AND overlap(a.ts, 3, b.ts, 1)))
WHERE r = 1;

-- left+qualify nulls first
SELECT a.seller, b.price
FROM auctions [RANGE 3 SECONDS] a
LEFT JOIN bids [RANGE 1 SECOND] b ON b.auction = a.id
QUALIFY ROW_NUMBER() OVER (PARTITION BY WINDOW(event_time, '10 seconds'), a.seller ORDER BY b.price) = 1;
SELECT seller, price
FROM (SELECT seller, price, row_number() OVER (PARTITION BY tumble(t, 10), seller ORDER BY price NULLS FIRST,
    seller) r FROM (SELECT a.id, a.seller, a.category, b.price, b.bidder, CASE WHEN b.ts IS NULL THEN a.ts +
    INTERVAL 3 SECOND ELSE greatest(a.ts, b.ts) END t FROM auctions a LEFT JOIN bids b ON b.auction = a.id AND
    overlap(a.ts, 3, b.ts, 1)))
WHERE r = 1;

-- full+group
SELECT window.start, COUNT(*) AS n, COUNT(p.id) AS np, SUM(a.reserve) AS s
FROM persons [RANGE 2 SECONDS] p
FULL JOIN auctions [RANGE 3 SECONDS] a ON p.id = a.seller
GROUP BY WINDOW(event_time, '7 seconds');
SELECT tumble(t, 7), count(*), count(id), sum(reserve)
FROM (SELECT p.id, a.reserve, CASE WHEN a.ts IS NULL THEN p.ts + INTERVAL 2 SECOND WHEN p.ts IS NULL THEN a.ts +
    INTERVAL 3 SECOND ELSE greatest(a.ts, p.ts) END t FROM persons p FULL JOIN auctions a ON p.id = a.seller AND
    overlap(p.ts, 2, a.ts, 3))
GROUP BY 1;

-- semi+group
SELECT a.category, window.end, COUNT(*) AS n
FROM auctions [RANGE 3 SECONDS] a
LEFT SEMI JOIN bids [RANGE 2 SECONDS] b ON b.auction = a.id
GROUP BY a.category, WINDOW(event_time, '4 seconds');
SELECT category, tumble(t, 4) + INTERVAL 4 SECOND, count(*)
FROM (SELECT a.category, greatest(a.ts, m) t FROM auctions a, LATERAL (SELECT min(b.ts) m FROM bids b WHERE
    b.auction = a.id AND overlap(a.ts, 3, b.ts, 2)) WHERE m IS NOT NULL)
GROUP BY 1, 2;

-- anti+group
SELECT window.start, COUNT(*) AS n
FROM auctions [RANGE 3 SECONDS] a
LEFT ANTI JOIN bids [RANGE 2 SECONDS] b ON b.auction = a.id
GROUP BY WINDOW(event_time, '4 seconds');
SELECT tumble(a.ts + INTERVAL 3 SECOND, 4), count(*)
FROM auctions a
WHERE NOT EXISTS (FROM bids b WHERE b.auction = a.id AND overlap(a.ts, 3, b.ts, 2))
GROUP BY 1;

-- group no window
SELECT a.category, COUNT(DISTINCT b.bidder) AS d, MIN(b.price) AS m
FROM auctions [RANGE 5 SECONDS] a
JOIN bids [RANGE 5 SECONDS] b ON b.auction = a.id
GROUP BY a.category
HAVING COUNT(DISTINCT b.bidder) > 1;
SELECT a.category, count(DISTINCT b.bidder), min(b.price)
FROM auctions a
JOIN bids b ON b.auction = a.id AND overlap(a.ts, 5, b.ts, 5)
GROUP BY 1
HAVING count(DISTINCT b.bidder) > 1;

-- topn of left table
SELECT *
FROM (SELECT c.label, b.price, ROW_NUMBER() OVER (PARTITION BY WINDOW(event_time, '20 seconds'), c.label ORDER
    BY b.price DESC) AS r FROM auctions [RANGE 5 SECONDS] a JOIN bids [RANGE 5 SECONDS] b ON b.auction = a.id
    LEFT JOIN cats c ON c.id = a.category)
WHERE r BETWEEN 2 AND 3;
SELECT label, price, r
FROM (SELECT c.label, b.price, row_number() OVER (PARTITION BY tumble(greatest(a.ts, b.ts), 20), c.label ORDER
    BY b.price DESC) r FROM auctions a JOIN bids b ON b.auction = a.id AND overlap(a.ts, 5, b.ts, 5) LEFT JOIN
    cats c ON c.id = a.category)
WHERE r BETWEEN 2 AND 3;

-- group of hop join
SELECT a.window_end, a.category, COUNT(*) AS n
FROM HOP(TABLE auctions, DESCRIPTOR(ts), INTERVAL '5' SECONDS, INTERVAL '10' SECONDS) a
JOIN HOP(TABLE bids, DESCRIPTOR(ts), INTERVAL '5' SECONDS, INTERVAL '10' SECONDS) b ON a.id = b.auction AND
    a.window_start = b.window_start AND a.window_end = b.window_end
GROUP BY a.window_end, a.category;
SELECT s + INTERVAL 10 SECOND, a.category, count(*)
FROM hops(5)
JOIN auctions a ON a.ts >= s AND a.ts < s + INTERVAL 10 SECOND
JOIN bids b ON b.ts >= s AND b.ts < s + INTERVAL 10 SECOND AND a.id = b.auction
GROUP BY 1, 2;
